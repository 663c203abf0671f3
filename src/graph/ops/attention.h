#pragma once

#include "graph/ops/op_context.h"

namespace hearth::graph {

class GraphBuilder;

/// What an attention layer is, apart from its inputs.
struct AttentionParams {
  std::int64_t layer = 0;  // index into the layers of the KV cache
  std::int64_t n_heads = 0;
  /// Divides n_heads; query head h reads key/value head h / (n_heads / n_kv_heads).
  std::int64_t n_kv_heads = 0;
  std::int64_t head_dim = 0;
  float scale = 0;
  std::int64_t window = 0;  // keys a query sees, itself included; 0: all before it

  bool operator==(const AttentionParams&) const = default;

  /// First position that a query at `position` sees.
  [[nodiscard]] std::int64_t first_key(std::int64_t position) const {
    return window == 0 || position < window ? 0 : position - window + 1;
  }
};

/// Causal attention over the paged cache: stores k and v of every row, then softmax(scale q K^T) V
/// per row and head.
/// q [rows, n_heads * head_dim], k and v [rows, n_kv_heads * head_dim]
/// -> [rows, n_heads * head_dim].
///
/// Canonical arithmetic: keys are cut at absolute multiples of attention_partition. Within a
/// partition: scores (dots in one chain of fused multiply-adds), their maximum, weights e^(score -
/// maximum), the weights' sum in lanes by position mod 16, and values added in ascending position.
/// Each partition is folded into the earlier ones, in ascending order, with both sides rescaled to
/// the larger maximum. Last, values / sum.
struct Attention {
  static constexpr std::string_view name = "attention";
  AttentionParams params;

  Result<ValueDesc> infer(std::span<const ValueDesc> inputs, const WeightTable& weights,
                          std::int64_t n_rows) const;
  void run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const;
};

ValueId attention(GraphBuilder& g, const AttentionParams& params, ValueId q, ValueId k, ValueId v);

inline constexpr std::int64_t attention_partition = 512;

}  // namespace hearth::graph
