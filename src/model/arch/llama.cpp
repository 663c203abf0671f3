/// llama: Llama 2 and 3, Mistral, SmolLM2 and their many derivatives.
/// Pre-norm transformer, grouped-query attention, SwiGLU. The converter permutes q and k, so pairs
/// are adjacent.

#include <cmath>
#include <utility>

#include "model/arch/all.h"
#include "model/layers.h"

namespace hearth::model {
namespace {

struct Layer {
  WeightId attn_norm{}, ffn_norm{};
  AttentionWeights attn;
  FfnWeights ffn;
};

class Llama final : public Architecture {
 public:
  static Result<std::unique_ptr<Architecture>> bind(WeightBinder& weights) {
    const ArchKeys keys(weights.file().metadata(), "llama");
    auto model = std::make_unique<Llama>();
    HEARTH_ASSIGN(const auto vocab, vocab_rows(weights.file()));
    HEARTH_ASSIGN(model->params_, read_hyper_params(keys, vocab));
    HEARTH_ASSIGN(model->rope_, read_rope(keys, model->params_));
    model->rope_.pairing = graph::RopePairing::adjacent;
    HEARTH_ASSIGN(model->rope_.freq_divisors,
                  weights.find_vector("rope_freqs.weight", model->rope_.n_rot / 2));
    HEARTH_ASSIGN(model->window_,
                  keys.count_or("attention.sliding_window", 0, 0, model->params_.context));
    HEARTH_ASSIGN(model->scale_,
                  keys.positive_or("attention.scale",
                                   1.0f / std::sqrt(static_cast<float>(model->params_.head_dim))));
    HEARTH_TRY(model->bind_layers(weights));
    return model;
  }

  [[nodiscard]] const HyperParams& params() const override { return params_; }

  [[nodiscard]] std::vector<graph::KvLayer> kv_layers() const override {
    return {static_cast<std::size_t>(params_.n_layers), {params_.n_kv_heads, params_.head_dim}};
  }

  [[nodiscard]] Result<graph::Graph> record(const graph::WeightTable& weights,
                                            graph::RowBucket bucket) const override {
    GraphBuilder g(weights, bucket);
    ValueId x = embed(g, ends_.embed, 1.0f);  // [rows, embed]
    for (std::int64_t i = 0; i < params_.n_layers; ++i) {
      x = block(g, layers_[static_cast<std::size_t>(i)], i, x);
    }
    return g.finish(logits_of(g, ends_, params_.norm_eps, x));
  }

 private:
  Result<void> bind_layers(WeightBinder& weights) {
    HEARTH_ASSIGN(ends_, bind_ends(weights, params_));
    for (std::int64_t i = 0; i < params_.n_layers; ++i) {
      Layer layer;
      HEARTH_ASSIGN(layer.attn_norm,
                    weights.vector(block_name(i, "attn_norm.weight"), params_.embed));
      HEARTH_ASSIGN(layer.attn, bind_attention(weights, params_, i));
      HEARTH_ASSIGN(layer.ffn_norm,
                    weights.vector(block_name(i, "ffn_norm.weight"), params_.embed));
      HEARTH_ASSIGN(layer.ffn, bind_ffn(weights, params_, i));
      layers_.push_back(layer);
    }
    return {};
  }

  // One pre-norm block. x [rows, embed] -> [rows, embed].
  ValueId block(GraphBuilder& g, const Layer& w, std::int64_t i, ValueId x) const {
    const ValueId attn_in = rms_norm(g, x, w.attn_norm, params_.norm_eps);
    const ValueId q =
        rope(g, matmul(g, attn_in, w.attn.q, w.attn.q_bias), rope_);  // [rows, n_heads * head_dim]
    const ValueId k = rope(g, matmul(g, attn_in, w.attn.k, w.attn.k_bias),
                           rope_);  // [rows, n_kv_heads * head_dim]
    const ValueId v = matmul(g, attn_in, w.attn.v, w.attn.v_bias);
    const graph::AttentionParams params{.layer = i,
                                        .n_heads = params_.n_heads,
                                        .n_kv_heads = params_.n_kv_heads,
                                        .head_dim = params_.head_dim,
                                        .scale = scale_,
                                        .window = window_};
    const ValueId attn =
        matmul(g, attention(g, params, q, k, v), w.attn.output, w.attn.output_bias);
    const ValueId h = add(g, x, attn);
    const ValueId ffn_in = rms_norm(g, h, w.ffn_norm, params_.norm_eps);
    return add(g, h, gated_ffn(g, w.ffn, graph::ActivationKind::silu, ffn_in));
  }

  HyperParams params_;
  graph::RopeParams rope_;
  std::int64_t window_ = 0;
  float scale_ = 0;
  EndWeights ends_;
  std::vector<Layer> layers_;
};

}  // namespace

Result<std::unique_ptr<Architecture>> bind_llama(WeightBinder& weights) {
  return Llama::bind(weights);
}

}  // namespace hearth::model
