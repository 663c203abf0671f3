#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hearth::tokenizer {

/// A compiled regular expression over UTF-8 text. The dialect is what published tokenizers use:
/// `\p{..}` general categories, look-around, `(?i:..)` with Unicode case folding, and `\s` for
/// Unicode white space. Move-only; matching is thread-safe.
class Pattern {
 public:
  /// Errors: invalid_argument for a malformed expression, unsupported in a build without a regular
  /// expression library.
  static Result<Pattern> create(std::string_view expression);

  Pattern(Pattern&& other) noexcept;
  Pattern& operator=(Pattern&& other) noexcept;
  ~Pattern();

  /// Cuts each piece of `text` again: every match and every gap between matches becomes a piece.
  /// `lengths` are the bytes of the pieces of `text`, in order; the result is the same for the
  /// finer pieces. A piece is matched alone: nothing looks beyond its ends. Errors:
  /// invalid_argument when matching needs more steps or memory than allowed.
  [[nodiscard]] Result<std::vector<std::uint32_t>> cut(
      std::string_view text, std::span<const std::uint32_t> lengths) const;

 private:
  struct Compiled;
  explicit Pattern(std::unique_ptr<Compiled> compiled);

  std::unique_ptr<Compiled> compiled_;
};

}  // namespace hearth::tokenizer
