#pragma once
/// Vocabularies of the SentencePiece tradition write a space as U+2581, "lower one eighth block".

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/token_table.h"

namespace hearth::tokenizer {

inline constexpr std::string_view visible_space = "\xe2\x96\x81";

/// `text` with each space written as U+2581.
[[nodiscard]] std::string show_spaces(std::string_view text);

/// `text` with each U+2581 written as a space.
[[nodiscard]] std::string hide_spaces(std::string_view text);

/// Whether a token that plain text can produce has a U+2581 after another character.
[[nodiscard]] bool has_token_across_words(const TokenTable& tokens);

/// The lengths of the words of `text`: a word begins at each U+2581 that follows something else.
/// Where no token goes across words, merging each word alone is merging the whole text.
[[nodiscard]] std::vector<std::uint32_t> word_lengths(std::string_view text);

}  // namespace hearth::tokenizer
