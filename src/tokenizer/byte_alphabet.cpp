#include "tokenizer/byte_alphabet.h"

#include <array>
#include <charconv>

#include "base/utf8.h"

namespace hearth::tokenizer {
namespace {

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

constexpr char32_t first_substitute = 0x100;  // the other 68 bytes take U+0100, U+0101, ...

constexpr std::array<char32_t, 256> make_alphabet() {
  std::array<char32_t, 256> alphabet{};
  char32_t substitute = first_substitute;
  for (unsigned byte = 0; byte < 256; ++byte) {
    alphabet[byte] = stands_for_itself(byte) ? char32_t{byte} : substitute++;
  }
  return alphabet;
}

constexpr std::array<char32_t, 256> alphabet = make_alphabet();
constexpr std::size_t n_characters = 0x100 + 68;  // every character of the alphabet is below

constexpr std::array<std::int16_t, n_characters> make_inverse() {
  std::array<std::int16_t, n_characters> inverse{};
  inverse.fill(-1);
  for (unsigned byte = 0; byte < 256; ++byte) {
    inverse[alphabet[byte]] = static_cast<std::int16_t>(byte);
  }
  return inverse;
}

constexpr std::array<std::int16_t, n_characters> inverse = make_inverse();

}  // namespace

char32_t byte_alphabet_character(std::uint8_t byte) {
  return alphabet[byte];
}

std::optional<std::string> decode_byte_alphabet(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const Utf8Character character = decode_utf8(text);
    if (character.code_point >= n_characters || inverse[character.code_point] < 0) {
      return std::nullopt;
    }
    bytes.push_back(static_cast<char>(inverse[character.code_point]));
    text.remove_prefix(character.n_bytes);
  }
  return bytes;
}

std::optional<std::uint8_t> parse_byte_token(std::string_view text) {
  constexpr std::string_view before = "<0x";
  if (text.size() != 6 || !text.starts_with(before) || text.back() != '>') {
    return std::nullopt;
  }
  std::uint8_t byte = 0;
  const char* digits = text.data() + before.size();
  const auto [stop, error] = std::from_chars(digits, digits + 2, byte, 16);
  return error == std::errc{} && stop == digits + 2 ? std::optional(byte) : std::nullopt;
}

}  // namespace hearth::tokenizer
