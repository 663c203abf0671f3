#pragma once

#include <memory>
#include <optional>

#include "tokenizer/text_encoder.h"
#include "tokenizer/token_table.h"
#include "tokenizer/vocabulary.h"

namespace hearth::tokenizer {

/// SentencePiece byte-pair encoding: spaces made visible, one put in front if `add_space_prefix`,
/// then merges by score over the whole text, byte tokens for what is left.
/// Source: Kudo and Richardson 2018, "SentencePiece".
std::unique_ptr<TextEncoder> make_sentence_piece_encoder(const Vocabulary& vocabulary,
                                                         const TokenTable& tokens,
                                                         std::optional<TokenId> unknown,
                                                         bool add_space_prefix);

}  // namespace hearth::tokenizer
