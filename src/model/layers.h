#pragma once
/// Parts that several architectures share.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/format.h"
#include "base/result.h"
#include "graph/builder.h"
#include "graph/ops/all_ops.h"
#include "model/hyper_params.h"
#include "model/weight_binder.h"

namespace hearth::model {

using graph::GraphBuilder;
using graph::ValueId;
using graph::WeightId;

/// "blk.7.attn_q.weight"
inline std::string block_name(std::int64_t layer, std::string_view suffix) {
  return format("blk.{}.{}", layer, suffix);
}

/// Query, key, value and output projections of one attention layer, with the biases that some
/// derivatives have.
struct AttentionWeights {
  WeightId q{}, k{}, v{}, output{};
  std::optional<WeightId> q_bias, k_bias, v_bias, output_bias;
};
/// `q_parts`: vectors of the head length that q holds per head, the query itself included.
Result<AttentionWeights> bind_attention(WeightBinder& weights, const HyperParams& params,
                                        std::int64_t layer, std::int64_t q_parts = 1);

/// The three projections of a gated feed-forward layer.
struct FfnWeights {
  WeightId gate{}, up{}, down{};
};
Result<FfnWeights> bind_ffn(WeightBinder& weights, const HyperParams& params, std::int64_t layer);

/// x [rows, embed] -> down(activation(gate x) * up x) [rows, embed].
ValueId gated_ffn(GraphBuilder& g, const FfnWeights& w, graph::ActivationKind kind, ValueId x);

/// Token embedding, final norm and output head; a file without output.weight ties the head to the
/// embedding.
struct EndWeights {
  WeightId embed{}, norm{}, head{};
};
Result<EndWeights> bind_ends(WeightBinder& weights, const HyperParams& params);

/// Final norm and head over the rows that ask: x [rows, embed] -> [logit rows, vocab].
ValueId logits_of(GraphBuilder& g, const EndWeights& w, float norm_eps, ValueId x);

/// The same with `hidden` [rows, embed] already behind its norm.
ValueId head_logits(GraphBuilder& g, WeightId head, ValueId hidden);

/// Rows of token_embd.weight: the vocabulary that the model computes.
/// Errors: invalid_file when the tensor is missing or not a matrix.
Result<std::int64_t> vocab_rows(const Checkpoint& file);

}  // namespace hearth::model
