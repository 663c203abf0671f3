#pragma once

#include <span>
#include <string>

#include "base/token_id.h"
#include "tokenizer/tokenizer.h"

namespace hearth::tokenizer {

struct DetokenizerOptions {
  /// Control tokens appear as their text; otherwise as nothing.
  bool show_control = false;
  /// The first token begins a text, so the space that encoding put in front is taken away.
  bool at_text_start = true;
};

/// Turns tokens into text one by one. What comes out is always valid UTF-8: an incomplete character
/// waits for its other bytes, an ill-formed one becomes U+FFFD (one per maximal subpart).
/// Borrows the tokenizer. One thread at a time.
class Detokenizer {
 public:
  explicit Detokenizer(const Tokenizer& tokenizer, DetokenizerOptions options = {});

  /// The text that is complete now. `token` must be in the vocabulary.
  std::string push(TokenId token);

  /// The end of the text: what was held back, as U+FFFD. The next push begins a new character.
  std::string flush();

  /// How many bytes wait for the rest of their character (0 to 3).
  [[nodiscard]] std::size_t n_held_back() const { return held_back_.size(); }

 private:
  const Tokenizer* tokenizer_;
  DetokenizerOptions options_;
  bool drops_space_;
  std::string held_back_;
};

/// The text of a whole sequence of tokens of the vocabulary.
[[nodiscard]] std::string detokenize(const Tokenizer& tokenizer, std::span<const TokenId> tokens,
                                     DetokenizerOptions options = {});

}  // namespace hearth::tokenizer
