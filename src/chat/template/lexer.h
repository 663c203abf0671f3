#pragma once
/// Splits a template into tokens, with Jinja's white-space rules as transformers sets them
/// (trim_blocks and lstrip_blocks on, one trailing newline dropped).
/// Source: Jinja 3.1 documentation, "Template Designer Documentation", sections Whitespace Control
/// and Escaping.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace hearth::chat {

enum class TokenKind : std::uint8_t {
  data,            // text outside of tags
  variable_begin,  // {{
  variable_end,    // }}
  block_begin,     // {%
  block_end,       // %}
  name,            // identifier or keyword
  string,
  integer,
  real,
  symbol,  // operator or bracket
  end,     // of the template
};

struct Token {
  TokenKind kind{};
  int line = 0;      // from 1
  std::string text;  // decoded for strings; the spelling for names and symbols
  std::variant<std::int64_t, double> number;
};

/// The tokens of `source`; the last one is TokenKind::end. Comments are gone, raw blocks are data.
/// Errors: invalid_file naming the line.
Result<std::vector<Token>> tokenize(std::string_view source);

}  // namespace hearth::chat
