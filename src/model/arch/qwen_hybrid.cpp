#include "model/arch/qwen_hybrid.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <variant>

#include "base/fail.h"

namespace hearth::model {
namespace {

/// One pre-norm block.
struct Layer {
  WeightId mixer_norm{}, ffn_norm{};
  std::variant<QwenAttention, DeltaNet> mixer;
  std::int64_t cache_layer = 0;  // among the attention layers, or among the recurrent ones
  std::variant<FfnWeights, ExpertFfn> ffn;
};

/// The head that predicts a further token: one block of attention, fed by the trunk's hidden row
/// and the next token.
struct MtpWeights {
  WeightId embed{}, token_norm{}, hidden_norm{}, join{}, norm{}, head{};
  Layer block;
};

/// The rotation of attention heads; `rope.dimension_sections` is checked where a file must have it.
Result<graph::RopeParams> read_rotation(const ArchKeys& keys, const HyperParams& params,
                                        bool has_sections) {
  HEARTH_ASSIGN(auto rotation, read_rope(keys, params));
  rotation.pairing = graph::RopePairing::half_split;
  if (has_sections) {
    // The first name is the usual one; files that also have the vision tower may have the other.
    const std::string_view name =
        keys.metadata().entry(keys.key("rope.dimension_sections")) == nullptr &&
                keys.metadata().entry(keys.key("mrope_sections")) != nullptr
            ? "mrope_sections"
            : "rope.dimension_sections";
    HEARTH_ASSIGN(const auto sections, keys.metadata().get_array<std::int32_t>(keys.key(name)));
    const auto n_pairs = std::accumulate(sections.begin(), sections.end(), std::int64_t{0});
    const bool is_negative = std::any_of(sections.begin(), sections.end(),
                                         [](std::int32_t section) { return section < 0; });
    if (sections.size() < 3 || is_negative || n_pairs != rotation.n_rot / 2) {
      return fail(
          ErrorCode::invalid_file,
          "{}: {} has {} entries with a sum of {}, expected 3 or 4, with the sum of {} pairs",
          keys.metadata().file(), keys.key(name), sections.size(), n_pairs, rotation.n_rot / 2);
    }
  }
  return rotation;
}

class HybridModel final : public Architecture, public MtpHead {
 public:
  static Result<std::unique_ptr<Architecture>> bind(WeightBinder& weights,
                                                    const HybridTraits& traits) {
    const ArchKeys keys(weights.file().metadata(), traits.name);
    auto model = std::make_unique<HybridModel>();
    HEARTH_ASSIGN(const auto vocab, vocab_rows(weights.file()));
    HEARTH_ASSIGN(model->params_, read_hyper_params(keys, vocab, KvHeads::in_some_layers));
    HEARTH_ASSIGN(const auto n_prediction, read_prediction_blocks(keys));
    model->params_.n_layers -= n_prediction;
    HEARTH_ASSIGN(model->rotation_, read_rotation(keys, model->params_, traits.has_rope_sections));
    HEARTH_ASSIGN(model->net_, read_delta_net(keys, traits.order));
    if (traits.has_experts) {
      HEARTH_ASSIGN(model->experts_, read_experts(keys, SharedExpert::gated));
    }
    HEARTH_ASSIGN(const auto is_recurrent, read_recurrent_layers(keys, model->params_.n_layers));
    HEARTH_TRY(model->bind_layers(weights, traits, is_recurrent));
    if (n_prediction > 0) {
      HEARTH_TRY(model->bind_mtp(weights, traits));
    }
    for (std::int64_t i = 1; i < n_prediction; ++i) {
      weights.set_aside(block_name(model->params_.n_layers + i, ""));
    }
    return model;
  }

  [[nodiscard]] const HyperParams& params() const override { return params_; }
  [[nodiscard]] std::vector<graph::KvLayer> kv_layers() const override {
    return {static_cast<std::size_t>(n_attention_), {params_.n_kv_heads, params_.head_dim}};
  }
  [[nodiscard]] std::vector<graph::StateLayer> state_layers() const override {
    return {static_cast<std::size_t>(n_recurrent_), net_.state()};
  }

  [[nodiscard]] Result<graph::Graph> record(const graph::WeightTable& weights,
                                            graph::RowBucket bucket) const override {
    GraphBuilder g(weights, bucket);
    return g.finish(logits_of(g, ends_, params_.norm_eps, trunk(g)));
  }

  [[nodiscard]] const MtpHead* mtp() const override { return mtp_ ? this : nullptr; }

  [[nodiscard]] graph::KvLayer mtp_kv_layer() const override {
    return {params_.n_kv_heads, params_.head_dim};
  }

  [[nodiscard]] Result<graph::Graph> record_storing_trunk(const graph::WeightTable& weights,
                                                          graph::RowBucket bucket) const override {
    GraphBuilder g(weights, bucket);
    const ValueId hidden = rms_norm(g, trunk(g), ends_.norm, params_.norm_eps);
    return g.finish(head_logits(g, ends_.head, store_rows(g, hidden)));
  }

  [[nodiscard]] Result<graph::Graph> record_mtp(const graph::WeightTable& weights,
                                                graph::RowBucket bucket) const override {
    GraphBuilder g(weights, bucket);
    const ValueId own =
        rms_norm(g, block(g, mtp_->block, mtp_input(g)), mtp_->norm, params_.norm_eps);
    return g.finish(head_logits(g, mtp_->head, store_rows(g, own)));
  }

  [[nodiscard]] Result<graph::Graph> record_mtp_reading(const graph::WeightTable& weights,
                                                        graph::RowBucket bucket) const override {
    GraphBuilder g(weights, bucket);
    const ValueId x = rms_norm(g, mtp_input(g), mtp_->block.mixer_norm, params_.norm_eps);
    return g.finish(
        select_rows(g, qwen_keys_and_values(g, std::get<QwenAttention>(mtp_->block.mixer), params_,
                                            rotation_, mtp_->block.cache_layer, x)));
  }

 private:
  Result<void> bind_layers(WeightBinder& weights, const HybridTraits& traits,
                           const std::vector<bool>& is_recurrent) {
    HEARTH_ASSIGN(ends_, bind_ends(weights, params_));
    for (std::int64_t i = 0; i < params_.n_layers; ++i) {
      Layer layer;
      if (is_recurrent[static_cast<std::size_t>(i)]) {
        HEARTH_ASSIGN(auto net, bind_delta_net(weights, params_, net_, i));
        HEARTH_ASSIGN(net.in, traits.bind_projections(weights, params_, net_, i));
        layer.mixer = net;
        layer.cache_layer = n_recurrent_++;
      } else {
        HEARTH_ASSIGN(layer.mixer,
                      bind_qwen_attention(weights, params_, AttentionGate::sigmoid, i));
        layer.cache_layer = n_attention_++;
      }
      HEARTH_TRY(bind_rest(weights, traits, i, layer));
      layers_.push_back(layer);
    }
    return {};
  }

  /// Norms and feed-forward of a block.
  Result<void> bind_rest(WeightBinder& weights, const HybridTraits& traits, std::int64_t i,
                         Layer& layer) const {
    HEARTH_ASSIGN(layer.mixer_norm,
                  weights.vector(block_name(i, "attn_norm.weight"), params_.embed));
    HEARTH_ASSIGN(layer.ffn_norm,
                  weights.vector(block_name(i, "post_attention_norm.weight"), params_.embed));
    if (traits.has_experts) {
      HEARTH_ASSIGN(layer.ffn, bind_experts(weights, params_, experts_, i));
    } else {
      HEARTH_ASSIGN(layer.ffn, bind_ffn(weights, params_, i));
    }
    return {};
  }

  /// The first block behind the trunk. Own embedding, head and norm are optional; the trunk's stand
  /// in for them.
  Result<void> bind_mtp(WeightBinder& weights, const HybridTraits& traits) {
    const std::int64_t i = params_.n_layers;
    const auto name = [i](std::string_view part) { return block_name(i, part); };
    MtpWeights mtp{.embed = ends_.embed, .norm = ends_.norm, .head = ends_.head};
    HEARTH_ASSIGN(mtp.token_norm, weights.vector(name("nextn.enorm.weight"), params_.embed));
    HEARTH_ASSIGN(mtp.hidden_norm, weights.vector(name("nextn.hnorm.weight"), params_.embed));
    HEARTH_ASSIGN(mtp.join,
                  weights.matrix(name("nextn.eh_proj.weight"), params_.embed, 2 * params_.embed));
    HEARTH_ASSIGN(const auto norm,
                  weights.find_vector(name("nextn.shared_head_norm.weight"), params_.embed));
    HEARTH_ASSIGN(const auto own_embed, weights.find_matrix(name("nextn.embed_tokens.weight"),
                                                            params_.vocab, params_.embed));
    HEARTH_ASSIGN(const auto own_head, weights.find_matrix(name("nextn.shared_head_head.weight"),
                                                           params_.vocab, params_.embed));
    mtp.norm = norm.value_or(mtp.norm);
    mtp.embed = own_embed.value_or(mtp.embed);
    mtp.head = own_head.value_or(mtp.head);
    HEARTH_ASSIGN(mtp.block.mixer,
                  bind_qwen_attention(weights, params_, AttentionGate::sigmoid, i));
    mtp.block.cache_layer = n_attention_;
    HEARTH_TRY(bind_rest(weights, traits, i, mtp.block));
    mtp_ = mtp;
    return {};
  }

  /// Token ids and stored hidden rows in, the input of the head's block out: [rows, embed].
  ValueId mtp_input(GraphBuilder& g) const {
    const float eps = params_.norm_eps;
    const ValueId token = rms_norm(g, embed(g, mtp_->embed, 1.0f), mtp_->token_norm, eps);
    const ValueId hidden = rms_norm(g, load_rows(g, params_.embed), mtp_->hidden_norm, eps);
    return matmul(g, concat(g, token, hidden), mtp_->join);
  }

  /// Tokens in, the residual stream behind the last block out: [rows, embed].
  ValueId trunk(GraphBuilder& g) const {
    ValueId x = embed(g, ends_.embed, 1.0f);
    for (const auto& layer : layers_) {
      x = block(g, layer, x);
    }
    return x;
  }

  // x [rows, embed] -> [rows, embed].
  ValueId block(GraphBuilder& g, const Layer& w, ValueId x) const {
    const ValueId mixer_in = rms_norm(g, x, w.mixer_norm, params_.norm_eps);
    const auto* net = std::get_if<DeltaNet>(&w.mixer);
    const ValueId mixed = net != nullptr
                              ? delta_net(g, *net, net_, params_.norm_eps, w.cache_layer, mixer_in)
                              : qwen_attention(g, std::get<QwenAttention>(w.mixer), params_,
                                               rotation_, w.cache_layer, mixer_in);
    const ValueId h = add(g, x, mixed);
    const ValueId ffn_in = rms_norm(g, h, w.ffn_norm, params_.norm_eps);
    if (const auto* experts = std::get_if<ExpertFfn>(&w.ffn)) {
      return expert_ffn(g, *experts, experts_.n_used, h, ffn_in);
    }
    return add(g, h,
               gated_ffn(g, std::get<FfnWeights>(w.ffn), graph::ActivationKind::silu, ffn_in));
  }

  HyperParams params_;
  graph::RopeParams rotation_;
  DeltaNetParams net_;
  ExpertParams experts_;
  EndWeights ends_;
  std::vector<Layer> layers_;
  std::optional<MtpWeights> mtp_;
  std::int64_t n_attention_ = 0;
  std::int64_t n_recurrent_ = 0;
};

}  // namespace

Result<std::unique_ptr<Architecture>> bind_hybrid(WeightBinder& weights,
                                                  const HybridTraits& traits) {
  return HybridModel::bind(weights, traits);
}

Result<DeltaNetProjections> bind_separate_projections(WeightBinder& weights,
                                                      const HyperParams& params,
                                                      const DeltaNetParams& net,
                                                      std::int64_t layer) {
  const std::int64_t n_heads = net.heads.n_value_heads;
  DeltaNetProjections in;
  HEARTH_ASSIGN(in.qkv,
                weights.matrix(block_name(layer, "attn_qkv.weight"), net.channels(), params.embed));
  HEARTH_ASSIGN(in.gate, weights.matrix(block_name(layer, "attn_gate.weight"),
                                        net.heads.value_features(), params.embed));
  HEARTH_ASSIGN(in.write_gate,
                weights.matrix(block_name(layer, "ssm_beta.weight"), n_heads, params.embed));
  HEARTH_ASSIGN(in.decay_gate,
                weights.matrix(block_name(layer, "ssm_alpha.weight"), n_heads, params.embed));
  return in;
}

namespace {

/// The flags of `attention.recurrent_layers`, as bools or as numbers; nullopt without that key.
Result<std::optional<std::vector<bool>>> find_recurrent_flags(const ArchKeys& keys,
                                                              std::int64_t n_layers) {
  constexpr std::string_view name = "attention.recurrent_layers";
  if (keys.metadata().entry(keys.key(name)) == nullptr) {
    return std::nullopt;
  }
  const auto flags = keys.metadata().get_array<bool>(keys.key(name));
  const auto numbers = keys.metadata().get_array<std::int64_t>(keys.key(name));
  if (!flags && !numbers) {
    return Failure(flags.error());
  }
  const std::size_t n_entries = flags ? flags->size() : numbers->size();
  if (std::cmp_less(n_entries, n_layers)) {
    return fail(ErrorCode::invalid_file,
                "{}: {} has {} entries, expected one for each of {} layers", keys.metadata().file(),
                keys.key(name), n_entries, n_layers);
  }
  std::vector<bool> is_recurrent(static_cast<std::size_t>(n_layers));
  for (std::size_t i = 0; i < is_recurrent.size(); ++i) {
    is_recurrent[i] = flags ? (*flags)[i] : (*numbers)[i] != 0;
  }
  return is_recurrent;
}

/// All but every n-th.
Result<std::vector<bool>> read_interval(const ArchKeys& keys, std::int64_t n_layers) {
  constexpr std::int64_t usual_interval = 4;
  HEARTH_ASSIGN(const auto interval,
                keys.count_or("full_attention_interval", usual_interval, 1, n_layers + 1));
  std::vector<bool> is_recurrent(static_cast<std::size_t>(n_layers));
  for (std::int64_t i = 0; i < n_layers; ++i) {
    is_recurrent[static_cast<std::size_t>(i)] = (i + 1) % interval != 0;
  }
  return is_recurrent;
}

}  // namespace

Result<std::vector<bool>> read_recurrent_layers(const ArchKeys& keys, std::int64_t n_layers) {
  HEARTH_ASSIGN(auto is_recurrent, find_recurrent_flags(keys, n_layers));
  HEARTH_ASSIGN(const auto kv_heads, find_kv_heads_by_layer(keys));
  const bool has_interval = keys.metadata().entry(keys.key("full_attention_interval")) != nullptr;
  if (!is_recurrent && kv_heads && !has_interval && std::ranges::count(*kv_heads, 0) > 0) {
    is_recurrent.emplace();
    for (std::int64_t i = 0; i < n_layers; ++i) {
      is_recurrent->push_back((*kv_heads)[static_cast<std::size_t>(i)] == 0);
    }
  } else if (!is_recurrent) {
    HEARTH_ASSIGN(is_recurrent, read_interval(keys, n_layers));
  }
  for (std::size_t i = 0; kv_heads && i < kv_heads->size(); ++i) {
    const bool has_attention = i >= is_recurrent->size() || !(*is_recurrent)[i];
    if (has_attention && (*kv_heads)[i] == 0) {
      return fail(ErrorCode::invalid_file, "{}: {}[{}] is 0, expected {} for a layer of attention",
                  keys.metadata().file(), keys.key("attention.head_count_kv"), i,
                  std::ranges::max(*kv_heads));
    }
  }
  return *std::move(is_recurrent);
}

}  // namespace hearth::model
