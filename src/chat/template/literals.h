#pragma once
/// Numbers and strings as templates spell them: Python's literals.

#include <cstddef>
#include <string_view>

#include "base/result.h"
#include "chat/template/lexer.h"

namespace hearth::chat {

struct SpelledLiteral {
  TokenKind kind{};
  std::string text;  // of a string, decoded; of a number, its digits
  std::variant<std::int64_t, double> number;
  std::size_t n_bytes = 0;  // of the spelling
};

/// The number that `source` starts with; it starts with a digit. Only integers unless
/// `allows_real`. Errors: invalid_file when it does not fit in 64 bits.
Result<SpelledLiteral> read_number(std::string_view source, bool allows_real);

/// The string that `source` starts with; it starts with a quote.
/// Errors: invalid_file when it does not end or an escape names no character.
Result<SpelledLiteral> read_string(std::string_view source);

}  // namespace hearth::chat
