#pragma once
/// Parts of the Qwen3 family: attention with normed queries and keys, the gated delta net, the
/// feed-forward of chosen experts. Sources: Qwen Team 2025, "Qwen3 Technical Report"; Yang et al.
/// 2024, "Gated Delta Networks"; the model code of Hugging Face transformers.

#include <optional>
#include <vector>

#include "graph/state_cache.h"
#include "model/layers.h"

namespace hearth::model {

/// With a gate, attn_q holds query and gate of each head in turn.
enum class AttentionGate { none, sigmoid };

struct QwenAttention {
  AttentionWeights projections;
  WeightId q_norm{}, k_norm{};
  AttentionGate gate{};
};
Result<QwenAttention> bind_qwen_attention(WeightBinder& weights, const HyperParams& params,
                                          AttentionGate gate, std::int64_t layer);

/// x [rows, embed] -> [rows, embed]; `kv_layer` counts attention layers only.
ValueId qwen_attention(GraphBuilder& g, const QwenAttention& w, const HyperParams& params,
                       const graph::RopeParams& rotation, std::int64_t kv_layer, ValueId x);

/// Stores the keys and values that qwen_attention() would; what it returns means nothing.
ValueId qwen_keys_and_values(GraphBuilder& g, const QwenAttention& w, const HyperParams& params,
                             const graph::RopeParams& rotation, std::int64_t kv_layer, ValueId x);

/// Numbers of the gated delta net, without the layer.
struct DeltaNetParams {
  graph::DeltaRuleParams heads;
  std::int64_t conv_taps = 0;

  /// Rows of attn_qkv: channels of the convolution.
  [[nodiscard]] std::int64_t channels() const {
    return 2 * heads.key_features() + heads.value_features();
  }
  [[nodiscard]] graph::StateLayer state() const;
};
Result<DeltaNetParams> read_delta_net(const ArchKeys& keys, graph::HeadOrder order);

/// What the layer's input is projected to, each [out, embed].
struct DeltaNetProjections {
  WeightId qkv{};         // [channels]
  WeightId gate{};        // [value features]
  WeightId write_gate{};  // [value heads]
  WeightId decay_gate{};  // [value heads]
};

struct DeltaNet {
  DeltaNetProjections in;
  WeightId conv{}, rate{}, bias{}, norm{}, output{};
};
/// Everything but the projections of the input, whose names differ between architectures.
/// Errors: also invalid_file for a decay rate that is not negative, as from a file whose ssm_a was
/// not transformed.
Result<DeltaNet> bind_delta_net(WeightBinder& weights, const HyperParams& params,
                                const DeltaNetParams& net, std::int64_t layer);

/// x [rows, embed] -> [rows, embed]; `state_layer` counts recurrent layers only.
ValueId delta_net(GraphBuilder& g, const DeltaNet& w, const DeltaNetParams& net, float norm_eps,
                  std::int64_t state_layer, ValueId x);

struct ExpertParams {
  std::int64_t n_experts = 0;
  std::int64_t n_used = 0;      // per token
  std::int64_t ffn = 0;         // of one expert
  std::int64_t shared_ffn = 0;  // of the expert that every token uses; 0: there is none
};
enum class SharedExpert { none, gated };
Result<ExpertParams> read_experts(const ArchKeys& keys, SharedExpert shared);

struct ExpertFfn {
  WeightId router{};
  graph::ExpertMatMul gate, up, down;
  struct Shared {
    WeightId gate{};  // [1, embed]: how much of it a token takes
    FfnWeights ffn;
  };
  std::optional<Shared> shared;
};
/// Gate and up of the experts may share a tensor (ffn_gate_up_exps, gate first) or not.
Result<ExpertFfn> bind_experts(WeightBinder& weights, const HyperParams& params,
                               const ExpertParams& experts, std::int64_t layer);

/// residual + the experts of x, all [rows, embed].
ValueId expert_ffn(GraphBuilder& g, const ExpertFfn& w, std::int64_t n_used, ValueId residual,
                   ValueId x);

}  // namespace hearth::model
