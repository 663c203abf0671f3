#pragma once

#include "graph/ops/op_context.h"

namespace hearth::graph {

class GraphBuilder;

/// Causal convolution of every channel by itself over the positions of a sequence, then SiLU:
/// y[p] = silu(sum over j of weight[j] x[p - taps + 1 + j]); positions before the first are zero.
/// x [rows, channels], weight [channels, taps] f32 -> [rows, channels]. Earlier rows come from the
/// ring of the sequence's state slot, and x goes into it.
///
/// Canonical arithmetic: one chain of fused multiply-adds from the oldest tap to the newest.
/// Source: Yang et al. 2024, "Gated Delta Networks", section 3.4.
struct CausalConv {
  static constexpr std::string_view name = "causal_conv";
  std::int64_t layer = 0;  // index into the layers of the state cache
  WeightId weight{};

  Result<ValueDesc> infer(std::span<const ValueDesc> inputs, const WeightTable& weights,
                          std::int64_t n_rows) const;
  void run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const;
};

ValueId causal_conv(GraphBuilder& g, std::int64_t layer, ValueId x, WeightId weight);

}  // namespace hearth::graph
