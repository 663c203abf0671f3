#pragma once

#include <cstdint>

#include "formats/gguf/metadata.h"

namespace hearth::model {

/// Sets the tokenizer.* keys: a byte-level BPE vocabulary of `n_tokens` that spells every text, and
/// a ChatML template. After three control tokens and the 256 bytes come pairs of letters ("th",
/// " a"), then pairs of pairs (" the", "tion"), each made by one merge, as many as there is room
/// for. `n_tokens` is at least 259 and at most 475,513.
void set_synthetic_vocabulary(formats::Metadata& metadata, std::int64_t n_tokens);

}  // namespace hearth::model
