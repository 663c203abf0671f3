#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/token_id.h"
#include "tokenizer/detokenizer.h"
#include "tokenizer/tokenizer.h"

namespace hearth::engine {

/// The visible text of an answer, token by token: complete UTF-8, cut before the first stop string.
/// Text that may be the beginning of a stop string is held back until that is decided, so what has
/// come out is final, and how tokens split the text changes nothing.
/// Borrows the tokenizer. One thread at a time.
class TextStream {
 public:
  /// `stops` are not empty and valid UTF-8. The match that begins first wins; of those that begin
  /// at the same place, the shortest. A stop that is the text of a control token also matches that
  /// token, though it has no visible text.
  TextStream(const tokenizer::Tokenizer& tokenizer, std::vector<std::string> stops,
             tokenizer::DetokenizerOptions options = {});

  /// The text that is certain now. After a stop string there is no more.
  std::string push(TokenId token);

  /// The end of the answer: the text held back.
  std::string finish();

  /// The stop string that ended the text; nullopt while none has.
  [[nodiscard]] const std::optional<std::string>& stop() const { return stop_; }

 private:
  enum class More { follows, never };
  std::string take_certain(More more);
  [[nodiscard]] const std::string* match_at(std::string_view text) const;
  [[nodiscard]] bool may_begin_a_stop(std::string_view text) const;

  const tokenizer::Tokenizer* tokenizer_;
  tokenizer::Detokenizer detokenizer_;
  std::vector<std::string> stops_;
  std::string held_back_;  // decoded, but perhaps the beginning of a stop string
  std::optional<std::string> stop_;
};

}  // namespace hearth::engine
