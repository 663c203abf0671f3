#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/pattern.h"
#include "tokenizer/pre_patterns.h"

namespace hearth::tokenizer {

/// Splits text into the pieces that merges never cross. Thread-safe.
class PreSplit {
 public:
  /// Errors: those of Pattern::create.
  static Result<PreSplit> create(const PreTokenizer& pre_tokenizer);

  /// The lengths in bytes of the pieces of `text` (valid UTF-8), in order; they add up to its size.
  /// Errors: those of Pattern::cut.
  [[nodiscard]] Result<std::vector<std::uint32_t>> split(std::string_view text) const;

 private:
  std::vector<Pattern> stages_;
};

}  // namespace hearth::tokenizer
