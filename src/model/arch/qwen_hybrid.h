#pragma once
/// The hybrid models of the Qwen family: three gated delta nets to every layer of gated attention,
/// behind each a dense or an expert feed-forward. qwen35, qwen35moe and qwen3next differ in what
/// this header lists.

#include "model/arch/qwen_blocks.h"
#include "model/architecture.h"

namespace hearth::model {

struct HybridTraits {
  std::string_view name;     // general.architecture
  graph::HeadOrder order{};  // of the value heads in the file
  bool has_experts = false;
  /// Whether the file must say how rotary pairs divide among the axes of an image's position. For
  /// text the axes are equal, and the rotation is the plain one.
  bool has_rope_sections = false;
  /// Finds the projections of a delta net's input.
  Result<DeltaNetProjections> (*bind_projections)(WeightBinder& weights, const HyperParams& params,
                                                  const DeltaNetParams& net, std::int64_t layer);
};

Result<std::unique_ptr<Architecture>> bind_hybrid(WeightBinder& weights,
                                                  const HybridTraits& traits);

/// attn_qkv, attn_gate, ssm_beta and ssm_alpha.
Result<DeltaNetProjections> bind_separate_projections(WeightBinder& weights,
                                                      const HyperParams& params,
                                                      const DeltaNetParams& net,
                                                      std::int64_t layer);

/// Which layers of the trunk are recurrent: those of a list, all but every n-th, or those without
/// heads of keys and values.
/// Errors: invalid_file for a list of another length, and for a layer of attention without heads.
Result<std::vector<bool>> read_recurrent_layers(const ArchKeys& keys, std::int64_t n_layers);

}  // namespace hearth::model
