/// qwen35moe: Qwen3.5 and Qwen3.6 with experts (35B-A3B to 397B-A17B), one of them shared by all
/// tokens. The converter writes value heads tiled.

#include "model/arch/all.h"
#include "model/arch/qwen_hybrid.h"

namespace hearth::model {

Result<std::unique_ptr<Architecture>> bind_qwen35moe(WeightBinder& weights) {
  return bind_hybrid(weights, {.name = "qwen35moe",
                               .order = graph::HeadOrder::tiled,
                               .has_experts = true,
                               .has_rope_sections = true,
                               .bind_projections = bind_separate_projections});
}

}  // namespace hearth::model
