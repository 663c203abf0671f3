#pragma once
/// UTF-8: decoding, checking and repairing text whose bytes cannot be trusted.
/// Ill-formed bytes become U+FFFD, one for each maximal subpart (Unicode Standard 15, section 3.9),
/// which is also what Python's errors="replace" and WHATWG decoders do.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth {

inline constexpr char32_t replacement_character = U'\uFFFD';

enum class Utf8Status : std::uint8_t {
  valid,
  invalid,    // no continuation can make these bytes well-formed
  truncated,  // a well-formed beginning, but the text ends inside the character
};

/// What the first bytes of a text are. When they are not valid, `code_point` is U+FFFD and
/// `n_bytes` is the length of the maximal subpart that it replaces.
struct Utf8Character {
  char32_t code_point = replacement_character;
  std::uint8_t n_bytes = 1;
  Utf8Status status = Utf8Status::invalid;
};

/// Decodes the first character of `text`, which must not be empty.
[[nodiscard]] Utf8Character decode_utf8(std::string_view text);

/// `code_point` must be a Unicode scalar value: at most U+10FFFF and no surrogate.
void append_utf8(std::string& text, char32_t code_point);

[[nodiscard]] bool is_valid_utf8(std::string_view text);

/// `text` with every ill-formed subpart replaced by U+FFFD; valid text comes back unchanged.
[[nodiscard]] std::string replace_invalid_utf8(std::string_view text);

/// The number of bytes (0 to 3) at the end of `text` that begin a character and do not finish it:
/// what a stream holds back until more bytes arrive.
[[nodiscard]] std::size_t incomplete_utf8_tail(std::string_view text);

}  // namespace hearth
