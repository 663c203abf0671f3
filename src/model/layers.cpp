#include "model/layers.h"

#include "base/fail.h"

namespace hearth::model {

Result<AttentionWeights> bind_attention(WeightBinder& weights, const HyperParams& params,
                                        std::int64_t layer, std::int64_t q_parts) {
  const std::int64_t mixed_features = params.n_heads * params.head_dim;
  const std::int64_t q_features = q_parts * mixed_features;
  const std::int64_t kv_features = params.n_kv_heads * params.head_dim;
  AttentionWeights w;
  HEARTH_ASSIGN(w.q, weights.matrix(block_name(layer, "attn_q.weight"), q_features, params.embed));
  HEARTH_ASSIGN(w.k, weights.matrix(block_name(layer, "attn_k.weight"), kv_features, params.embed));
  HEARTH_ASSIGN(w.v, weights.matrix(block_name(layer, "attn_v.weight"), kv_features, params.embed));
  HEARTH_ASSIGN(w.output, weights.matrix(block_name(layer, "attn_output.weight"), params.embed,
                                         mixed_features));
  HEARTH_ASSIGN(w.q_bias, weights.find_vector(block_name(layer, "attn_q.bias"), q_features));
  HEARTH_ASSIGN(w.k_bias, weights.find_vector(block_name(layer, "attn_k.bias"), kv_features));
  HEARTH_ASSIGN(w.v_bias, weights.find_vector(block_name(layer, "attn_v.bias"), kv_features));
  HEARTH_ASSIGN(w.output_bias,
                weights.find_vector(block_name(layer, "attn_output.bias"), params.embed));
  return w;
}

Result<FfnWeights> bind_ffn(WeightBinder& weights, const HyperParams& params, std::int64_t layer) {
  FfnWeights w;
  HEARTH_ASSIGN(w.gate,
                weights.matrix(block_name(layer, "ffn_gate.weight"), params.ffn, params.embed));
  HEARTH_ASSIGN(w.up, weights.matrix(block_name(layer, "ffn_up.weight"), params.ffn, params.embed));
  HEARTH_ASSIGN(w.down,
                weights.matrix(block_name(layer, "ffn_down.weight"), params.embed, params.ffn));
  return w;
}

ValueId gated_ffn(GraphBuilder& g, const FfnWeights& w, graph::ActivationKind kind, ValueId x) {
  const ValueId gate = activation(g, kind, matmul(g, x, w.gate));  // [rows, ffn]
  return matmul(g, mul(g, gate, matmul(g, x, w.up)), w.down);
}

Result<EndWeights> bind_ends(WeightBinder& weights, const HyperParams& params) {
  EndWeights w;
  HEARTH_ASSIGN(w.embed, weights.matrix("token_embd.weight", params.vocab, params.embed));
  HEARTH_ASSIGN(w.norm, weights.vector("output_norm.weight", params.embed));
  HEARTH_ASSIGN(const auto head, weights.find_matrix("output.weight", params.vocab, params.embed));
  w.head = head.value_or(w.embed);
  return w;
}

ValueId logits_of(GraphBuilder& g, const EndWeights& w, float norm_eps, ValueId x) {
  return matmul(g, rms_norm(g, select_rows(g, x), w.norm, norm_eps), w.head);
}

ValueId head_logits(GraphBuilder& g, WeightId head, ValueId hidden) {
  return matmul(g, select_rows(g, hidden), head);
}

Result<std::int64_t> vocab_rows(const Checkpoint& file) {
  const auto* table = file.find("token_embd.weight");
  if (table == nullptr || table->shape.rank() != 2) {
    return fail(ErrorCode::invalid_file,
                "{}: tensor 'token_embd.weight' is {}, expected a matrix [vocab, embed]",
                file.name(), table == nullptr ? "missing" : to_string(table->shape));
  }
  return table->shape[0];
}

}  // namespace hearth::model
