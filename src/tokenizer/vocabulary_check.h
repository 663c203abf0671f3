#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "tokenizer/vocabulary.h"

namespace hearth::tokenizer {

/// No real token comes near; it keeps the cost of a text lookup bounded.
inline constexpr std::size_t max_token_bytes = 8192;

/// The checks that need no index: sizes of the lists, ranges of ids, types, scores, text lengths.
/// Errors: invalid_file, naming the list and the position.
Result<void> check_lists(const Vocabulary& vocabulary);

/// `text` for an error message: in quotes, shortened, with control characters and invalid bytes
/// made visible.
std::string in_quotes(std::string_view text);

}  // namespace hearth::tokenizer
