#pragma once

#include <string_view>
#include <vector>

#include "base/token_id.h"
#include "tokenizer/token_table.h"
#include "tokenizer/vocabulary.h"

namespace hearth::tokenizer {

/// Whether published models end their answers with a token of this text: "<|im_end|>".
[[nodiscard]] bool names_an_end(std::string_view text);

/// The tokens after which generation stops: those with such a role, and those whose text says so,
/// because files often name only one of several. In increasing order.
std::vector<TokenId> find_end_of_generation(const TokenTable& tokens, const SpecialTokens& special);

}  // namespace hearth::tokenizer
