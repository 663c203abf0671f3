/// qwen3: Qwen3 with dense feed-forward layers (0.6B to 32B). Pre-norm transformer whose queries
/// and keys are normed per head before rotation; heads need not add up to the embedding.
/// qwen3moe: the same with a choice of experts in place of every feed-forward layer (30B-A3B,
/// 235B-A22B).

#include <utility>
#include <variant>

#include "model/arch/all.h"
#include "model/arch/qwen_blocks.h"

namespace hearth::model {
namespace {

struct Layer {
  WeightId attn_norm{}, ffn_norm{};
  QwenAttention attn;
  std::variant<FfnWeights, ExpertFfn> ffn;
};

class Qwen3 final : public Architecture {
 public:
  static Result<std::unique_ptr<Architecture>> bind(WeightBinder& weights, std::string_view name,
                                                    bool has_experts) {
    const ArchKeys keys(weights.file().metadata(), name);
    auto model = std::make_unique<Qwen3>();
    HEARTH_ASSIGN(const auto vocab, vocab_rows(weights.file()));
    HEARTH_ASSIGN(model->params_, read_hyper_params(keys, vocab));
    HEARTH_ASSIGN(model->rotation_, read_rope(keys, model->params_));
    model->rotation_.pairing = graph::RopePairing::half_split;
    if (has_experts) {
      HEARTH_ASSIGN(model->experts_, read_experts(keys, SharedExpert::none));
    }
    HEARTH_TRY(model->bind_layers(weights, has_experts));
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
  Result<void> bind_layers(WeightBinder& weights, bool has_experts) {
    HEARTH_ASSIGN(ends_, bind_ends(weights, params_));
    for (std::int64_t i = 0; i < params_.n_layers; ++i) {
      Layer layer;
      HEARTH_ASSIGN(layer.attn_norm,
                    weights.vector(block_name(i, "attn_norm.weight"), params_.embed));
      HEARTH_ASSIGN(layer.attn, bind_qwen_attention(weights, params_, AttentionGate::none, i));
      HEARTH_ASSIGN(layer.ffn_norm,
                    weights.vector(block_name(i, "ffn_norm.weight"), params_.embed));
      if (has_experts) {
        HEARTH_ASSIGN(layer.ffn, bind_experts(weights, params_, experts_, i));
      } else {
        HEARTH_ASSIGN(layer.ffn, bind_ffn(weights, params_, i));
      }
      layers_.push_back(layer);
    }
    return {};
  }

  // One pre-norm block. x [rows, embed] -> [rows, embed].
  ValueId block(GraphBuilder& g, const Layer& w, std::int64_t i, ValueId x) const {
    const ValueId attn_in = rms_norm(g, x, w.attn_norm, params_.norm_eps);
    const ValueId h = add(g, x, qwen_attention(g, w.attn, params_, rotation_, i, attn_in));
    const ValueId ffn_in = rms_norm(g, h, w.ffn_norm, params_.norm_eps);
    if (const auto* experts = std::get_if<ExpertFfn>(&w.ffn)) {
      return expert_ffn(g, *experts, experts_.n_used, h, ffn_in);
    }
    return add(g, h,
               gated_ffn(g, std::get<FfnWeights>(w.ffn), graph::ActivationKind::silu, ffn_in));
  }

  HyperParams params_;
  graph::RopeParams rotation_;
  ExpertParams experts_;
  EndWeights ends_;
  std::vector<Layer> layers_;
};

}  // namespace

Result<std::unique_ptr<Architecture>> bind_qwen3(WeightBinder& weights) {
  return Qwen3::bind(weights, "qwen3", false);
}

Result<std::unique_ptr<Architecture>> bind_qwen3moe(WeightBinder& weights) {
  return Qwen3::bind(weights, "qwen3moe", true);
}

}  // namespace hearth::model
