#pragma once

#include <memory>
#include <optional>

#include "tokenizer/text_encoder.h"
#include "tokenizer/token_table.h"
#include "tokenizer/vocabulary.h"

namespace hearth::tokenizer {

/// Unigram language model: the segmentation of the normalized text with the largest sum of scores.
/// Source: Kudo 2018, "Subword Regularization", section 3.
/// Errors: invalid_file for a malformed charsmap or a token that is too long.
Result<std::unique_ptr<TextEncoder>> make_unigram_encoder(const Vocabulary& vocabulary,
                                                          const TokenTable& tokens,
                                                          std::optional<TokenId> unknown,
                                                          bool add_space_prefix);

}  // namespace hearth::tokenizer
