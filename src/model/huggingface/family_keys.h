#pragma once
/// The keys of a family that are more than a number copied from config.json; see Family::add_keys.

#include "base/result.h"
#include "model/huggingface/family.h"

namespace hearth::model {

Result<void> add_llama_keys(const Config& config, const Dimensions& dimensions,
                            formats::Metadata& metadata);
Result<void> add_gemma3_keys(const Config& config, const Dimensions& dimensions,
                             formats::Metadata& metadata);
Result<void> add_qwen3_keys(const Config& config, const Dimensions& dimensions,
                            formats::Metadata& metadata);
Result<void> add_qwen3moe_keys(const Config& config, const Dimensions& dimensions,
                               formats::Metadata& metadata);
Result<void> add_qwen3next_keys(const Config& config, const Dimensions& dimensions,
                                formats::Metadata& metadata);
Result<void> add_qwen35_keys(const Config& config, const Dimensions& dimensions,
                             formats::Metadata& metadata);
Result<void> add_qwen35moe_keys(const Config& config, const Dimensions& dimensions,
                                formats::Metadata& metadata);

}  // namespace hearth::model
