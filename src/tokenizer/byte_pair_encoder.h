#pragma once

#include <memory>
#include <optional>

#include "tokenizer/text_encoder.h"
#include "tokenizer/token_table.h"
#include "tokenizer/vocabulary.h"

namespace hearth::tokenizer {

/// Byte-pair encoding with ranked merges: pre-tokenizer patterns, then merges within each piece.
/// Source: Sennrich et al. 2016, section 3.2; over bytes as in GPT-2.
/// Errors: unsupported for the pre-tokenizer, invalid_file for malformed merges.
Result<std::unique_ptr<TextEncoder>> make_byte_pair_encoder(const Vocabulary& vocabulary,
                                                            const TokenTable& tokens,
                                                            std::optional<TokenId> unknown);

}  // namespace hearth::tokenizer
