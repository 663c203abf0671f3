#pragma once
/// The little Unicode that Python's string methods need: code points, white space, case.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::chat {

/// One code point of UTF-8 text and the bytes it takes. A byte that starts no valid sequence is one
/// "character" of its own with value 0xDC00 + byte, as Python's surrogateescape decodes it.
struct CodePoint {
  char32_t value;
  std::size_t n_bytes;
};

/// The code point at `offset`, which must be inside `text`.
[[nodiscard]] CodePoint code_point_at(std::string_view text, std::size_t offset);

/// The start of the code point that ends at byte `end` (> 0).
[[nodiscard]] std::size_t previous_code_point(std::string_view text, std::size_t end);

/// How many code points `text` has: Python's len().
[[nodiscard]] std::size_t count_code_points(std::string_view text);

/// The byte offset of the code point number `index`; the size of `text` when it has fewer.
[[nodiscard]] std::size_t byte_offset(std::string_view text, std::size_t index);

void append_utf8(std::string& out, char32_t code_point);

/// Python's str.isspace() for one character.
[[nodiscard]] bool is_space(char32_t c);

/// A line boundary of Python's str.splitlines().
[[nodiscard]] bool is_line_break(char32_t c);

/// Simple case mappings of the Latin, Greek, Cyrillic and Armenian scripts; other characters map to
/// themselves. (Python also maps a few characters to several, and rarer scripts; no chat template
/// depends on those.)
[[nodiscard]] char32_t to_upper(char32_t c);
[[nodiscard]] char32_t to_lower(char32_t c);

/// A character whose case can change: what Python's isupper()/islower()/title() look at.
[[nodiscard]] bool is_cased(char32_t c);

}  // namespace hearth::chat
