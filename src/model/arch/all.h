#pragma once
/// The constructors behind the list in all.cpp, one per file of this folder.

#include "model/architecture.h"

namespace hearth::model {

Result<std::unique_ptr<Architecture>> bind_gemma3(WeightBinder& weights);
Result<std::unique_ptr<Architecture>> bind_llama(WeightBinder& weights);
Result<std::unique_ptr<Architecture>> bind_qwen3(WeightBinder& weights);
Result<std::unique_ptr<Architecture>> bind_qwen35(WeightBinder& weights);
Result<std::unique_ptr<Architecture>> bind_qwen35moe(WeightBinder& weights);
Result<std::unique_ptr<Architecture>> bind_qwen3moe(WeightBinder& weights);
Result<std::unique_ptr<Architecture>> bind_qwen3next(WeightBinder& weights);

}  // namespace hearth::model
