/// qwen35: Qwen3.5 and Qwen3.6 with dense feed-forward layers (0.8B to 27B). The converter writes
/// value heads tiled.

#include "model/arch/all.h"
#include "model/arch/qwen_hybrid.h"

namespace hearth::model {

Result<std::unique_ptr<Architecture>> bind_qwen35(WeightBinder& weights) {
  return bind_hybrid(weights, {.name = "qwen35",
                               .order = graph::HeadOrder::tiled,
                               .has_experts = false,
                               .has_rope_sections = true,
                               .bind_projections = bind_separate_projections});
}

}  // namespace hearth::model
