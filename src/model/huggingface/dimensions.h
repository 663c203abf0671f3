#pragma once

#include "base/result.h"
#include "model/huggingface/config.h"
#include "model/huggingface/family.h"

namespace hearth::model {

/// Reads and bounds the sizes. Errors: not_found and invalid_file, naming file and key.
Result<Dimensions> read_dimensions(const Config& config, const Family& family);

/// The metadata that config.json holds: the keys of the family. `n_draft_layers` layers of a
/// multi-token-prediction head count as blocks, as GGUF counts them.
Result<formats::Metadata> metadata_of_config(const Config& config, const Family& family,
                                             const Dimensions& dimensions,
                                             std::int64_t n_draft_layers);

}  // namespace hearth::model
