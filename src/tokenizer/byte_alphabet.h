#pragma once
/// The printable alphabet in which byte-level vocabularies write bytes: each byte is one character.
/// Source: GPT-2; docs/formats/tokenizers.md, "Byte alphabet".

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::tokenizer {

/// The character that stands for `byte`.
[[nodiscard]] char32_t byte_alphabet_character(std::uint8_t byte);

/// The bytes that `text` spells, or nullopt when one of its characters is not in the alphabet.
[[nodiscard]] std::optional<std::string> decode_byte_alphabet(std::string_view text);

/// The byte that a byte token's text names: "<0x0A>" is 10. Two hexadecimal digits of either case.
[[nodiscard]] std::optional<std::uint8_t> parse_byte_token(std::string_view text);

}  // namespace hearth::tokenizer
