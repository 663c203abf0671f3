#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hearth::tokenizer {

/// The compiled replacements of a SentencePiece normalizer (`precompiled_charsmap`): an XOR-packed
/// double-array trie of texts, and a table of what replaces them.
/// Layout: docs/formats/tokenizers.md, "Charsmap". Reading is thread-safe.
class Charsmap {
 public:
  /// Replaces nothing.
  Charsmap() = default;

  /// Copies `bytes`; empty bytes replace nothing.
  /// Errors: invalid_file when a size or an offset does not fit.
  static Result<Charsmap> parse(std::string_view bytes);

  /// `text` (valid UTF-8) with the longest known text at each position replaced.
  [[nodiscard]] std::string normalize(std::string_view text) const;

 private:
  struct Replacement {
    std::size_t length;     // bytes of the text that is replaced
    std::string_view text;  // what takes its place
  };

  [[nodiscard]] std::optional<Replacement> longest_match(std::string_view text) const;

  std::vector<std::uint32_t> nodes_;
  std::vector<char> replacements_;  // each ends with a zero byte, and so does the whole
};

}  // namespace hearth::tokenizer
