#pragma once

#include "base/result.h"
#include "formats/gguf/metadata.h"
#include "tokenizer/tokenizer.h"

namespace hearth::model {

/// The tokenizer that the `tokenizer.*` keys of a GGUF file describe.
/// Errors: not_found for a missing key, invalid_file for a key of the wrong type or a vocabulary
/// that contradicts itself, unsupported for a kind of tokenizer that nothing here implements.
Result<tokenizer::Tokenizer> tokenizer_from_gguf(const formats::Metadata& metadata);

}  // namespace hearth::model
