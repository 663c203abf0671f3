/// gemma3: scaled embeddings, norms before and after each sub-layer, normed q and k, GeGLU; most
/// layers see a sliding window with their own RoPE base, every sixth sees all. Source: Gemma Team
/// 2025, "Gemma 3 Technical Report".

#include <cmath>
#include <utility>

#include "base/fail.h"
#include "model/arch/all.h"
#include "model/layers.h"

namespace hearth::model {
namespace {

constexpr std::int64_t layers_of_27b = 62;  // the one size whose scale is not 1 / sqrt(head_dim)

struct Layer {
  bool is_global = false;
  WeightId attn_norm{}, post_attn_norm{}, ffn_norm{}, post_ffn_norm{};
  WeightId q_norm{}, k_norm{};
  AttentionWeights attn;
  FfnWeights ffn;
};

/// Which layers see everything: a period (every n-th) or one flag per layer (true: sliding).
/// Default: every sixth.
Result<std::vector<bool>> global_layers(const ArchKeys& keys, std::int64_t n_layers) {
  constexpr std::string_view name = "attention.sliding_window_pattern";
  const auto* entry = keys.metadata().entry(keys.key(name));
  std::vector<bool> is_global;
  if (entry != nullptr && std::holds_alternative<formats::Array>(entry->value)) {
    HEARTH_ASSIGN(const auto sliding, keys.metadata().get_array<bool>(keys.key(name)));
    if (static_cast<std::int64_t>(sliding.size()) < n_layers) {
      return fail(ErrorCode::invalid_file,
                  "{}: {} has {} entries, expected one for each of {} layers",
                  keys.metadata().file(), keys.key(name), sliding.size(), n_layers);
    }
    for (std::int64_t i = 0; i < n_layers; ++i) {
      is_global.push_back(!sliding[static_cast<std::size_t>(i)]);
    }
    return is_global;
  }
  HEARTH_ASSIGN(const auto period, keys.count_or(name, 6, 1, n_layers + 1));
  for (std::int64_t i = 0; i < n_layers; ++i) {
    is_global.push_back((i + 1) % period == 0);
  }
  return is_global;
}

class Gemma3 final : public Architecture {
 public:
  static Result<std::unique_ptr<Architecture>> bind(WeightBinder& weights) {
    const ArchKeys keys(weights.file().metadata(), "gemma3");
    auto model = std::make_unique<Gemma3>();
    HEARTH_ASSIGN(const auto vocab, vocab_rows(weights.file()));
    HEARTH_ASSIGN(model->params_, read_hyper_params(keys, vocab));
    HEARTH_TRY(model->read_attention(keys));
    HEARTH_ASSIGN(const auto is_global, global_layers(keys, model->params_.n_layers));
    HEARTH_TRY(model->bind_layers(weights, is_global));
    return model;
  }

  [[nodiscard]] const HyperParams& params() const override { return params_; }

  [[nodiscard]] std::vector<graph::KvLayer> kv_layers() const override {
    return {static_cast<std::size_t>(params_.n_layers), {params_.n_kv_heads, params_.head_dim}};
  }

  [[nodiscard]] Result<graph::Graph> record(const graph::WeightTable& weights,
                                            graph::RowBucket bucket) const override {
    GraphBuilder g(weights, bucket);
    ValueId x =
        embed(g, ends_.embed, std::sqrt(static_cast<float>(params_.embed)));  // [rows, embed]
    for (std::int64_t i = 0; i < params_.n_layers; ++i) {
      x = block(g, layers_[static_cast<std::size_t>(i)], i, x);
    }
    ValueId logits = logits_of(g, ends_, params_.norm_eps, x);
    if (softcap_ > 0) {
      logits = softcap(g, softcap_, logits);
    }
    return g.finish(logits);
  }

 private:
  Result<void> read_attention(const ArchKeys& keys) {
    HEARTH_ASSIGN(global_rope_, read_rope(keys, params_));
    global_rope_.pairing = graph::RopePairing::half_split;
    local_rope_ = global_rope_;
    local_rope_.position_scale = 1.0f;
    local_rope_.yarn.reset();
    HEARTH_ASSIGN(local_rope_.base, keys.positive_or("rope.freq_base_swa", 10000.0f));
    HEARTH_ASSIGN(window_, keys.count("attention.sliding_window", 1, std::int64_t{1} << 30));
    const std::int64_t scaled =
        params_.n_layers == layers_of_27b ? params_.embed / params_.n_heads : params_.head_dim;
    HEARTH_ASSIGN(
        scale_, keys.positive_or("attention.scale", 1.0f / std::sqrt(static_cast<float>(scaled))));
    HEARTH_ASSIGN(softcap_, keys.get_or<float>("final_logit_softcapping", 0.0f));
    return {};
  }

  Result<void> bind_layers(WeightBinder& weights, const std::vector<bool>& is_global) {
    HEARTH_ASSIGN(ends_, bind_ends(weights, params_));
    for (std::int64_t i = 0; i < params_.n_layers; ++i) {
      Layer layer{.is_global = is_global[static_cast<std::size_t>(i)]};
      HEARTH_ASSIGN(layer.attn_norm,
                    weights.vector(block_name(i, "attn_norm.weight"), params_.embed));
      HEARTH_ASSIGN(layer.post_attn_norm,
                    weights.vector(block_name(i, "post_attention_norm.weight"), params_.embed));
      HEARTH_ASSIGN(layer.ffn_norm,
                    weights.vector(block_name(i, "ffn_norm.weight"), params_.embed));
      HEARTH_ASSIGN(layer.post_ffn_norm,
                    weights.vector(block_name(i, "post_ffw_norm.weight"), params_.embed));
      HEARTH_ASSIGN(layer.q_norm,
                    weights.vector(block_name(i, "attn_q_norm.weight"), params_.head_dim));
      HEARTH_ASSIGN(layer.k_norm,
                    weights.vector(block_name(i, "attn_k_norm.weight"), params_.head_dim));
      HEARTH_ASSIGN(layer.attn, bind_attention(weights, params_, i));
      HEARTH_ASSIGN(layer.ffn, bind_ffn(weights, params_, i));
      layers_.push_back(layer);
    }
    return {};
  }

  // One block with a norm before and after each half. x [rows, embed] -> [rows, embed].
  ValueId block(GraphBuilder& g, const Layer& w, std::int64_t i, ValueId x) const {
    const float eps = params_.norm_eps;
    const auto& rotation = w.is_global ? global_rope_ : local_rope_;
    const ValueId attn_in = rms_norm(g, x, w.attn_norm, eps);
    const ValueId q =
        rope(g, rms_norm(g, matmul(g, attn_in, w.attn.q, w.attn.q_bias), w.q_norm, eps), rotation);
    const ValueId k =
        rope(g, rms_norm(g, matmul(g, attn_in, w.attn.k, w.attn.k_bias), w.k_norm, eps), rotation);
    const ValueId v = matmul(g, attn_in, w.attn.v, w.attn.v_bias);  // [rows, n_kv_heads * head_dim]
    const graph::AttentionParams params{.layer = i,
                                        .n_heads = params_.n_heads,
                                        .n_kv_heads = params_.n_kv_heads,
                                        .head_dim = params_.head_dim,
                                        .scale = scale_,
                                        .window = w.is_global ? 0 : window_};
    const ValueId attn =
        matmul(g, attention(g, params, q, k, v), w.attn.output, w.attn.output_bias);
    const ValueId h = add(g, x, rms_norm(g, attn, w.post_attn_norm, eps));
    const ValueId ffn_in = rms_norm(g, h, w.ffn_norm, eps);
    const ValueId ffn = gated_ffn(g, w.ffn, graph::ActivationKind::gelu_tanh, ffn_in);
    return add(g, h, rms_norm(g, ffn, w.post_ffn_norm, eps));
  }

  HyperParams params_;
  graph::RopeParams global_rope_, local_rope_;
  std::int64_t window_ = 0;
  float scale_ = 0;
  float softcap_ = 0;  // 0: none
  EndWeights ends_;
  std::vector<Layer> layers_;
};

}  // namespace

Result<std::unique_ptr<Architecture>> bind_gemma3(WeightBinder& weights) {
  return Gemma3::bind(weights);
}

}  // namespace hearth::model
