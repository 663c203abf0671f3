/// A synthetic model of the qwen35 or the qwen35moe architecture (model/arch/qwen_hybrid.h), with
/// its MTP head.

#include <array>
#include <cstddef>
#include <vector>

#include "base/format.h"
#include "model/synth/synth_tensor.h"

namespace hearth::model {
namespace {

constexpr std::int64_t conv_taps = 4;
constexpr std::int64_t attention_interval = 4;

struct Part {
  std::string_view role;  // the name without ".weight", unless `name` says otherwise
  Shape shape;
  SynthFill fill = SynthFill::random;
  std::string_view name;
};

std::vector<Part> attention_parts(const HyperParams& p) {
  const std::int64_t q = p.n_heads * p.head_dim;
  const std::int64_t kv = p.n_kv_heads * p.head_dim;
  return {{"attn_q", {2 * q, p.embed}},  // queries and gates
          {"attn_k", {kv, p.embed}},
          {"attn_v", {kv, p.embed}},
          {"attn_output", {p.embed, q}},
          {"attn_q_norm", {p.head_dim}, SynthFill::ones},
          {"attn_k_norm", {p.head_dim}, SynthFill::ones}};
}

std::vector<Part> delta_net_parts(const HyperParams& p, const HybridShape& h) {
  const std::int64_t keys = h.n_key_heads * h.state_dim;
  const std::int64_t values = h.n_value_heads * h.state_dim;
  const std::int64_t channels = 2 * keys + values;
  return {{"attn_qkv", {channels, p.embed}},
          {"attn_gate", {values, p.embed}},
          {"ssm_beta", {h.n_value_heads, p.embed}, SynthFill::random_f32},
          {"ssm_alpha", {h.n_value_heads, p.embed}, SynthFill::random_f32},
          {"ssm_conv1d", {channels, conv_taps}, SynthFill::random_f32},
          {"ssm_a", {h.n_value_heads}, SynthFill::slow_decay, "ssm_a"},
          {"ssm_dt", {h.n_value_heads}, SynthFill::random_f32, "ssm_dt.bias"},
          {"ssm_norm", {h.state_dim}, SynthFill::ones},
          {"ssm_out", {p.embed, values}}};
}

std::vector<Part> ffn_parts(const HyperParams& p, const HybridShape& h) {
  if (h.n_experts == 0) {
    return {{"ffn_gate", {p.ffn, p.embed}},
            {"ffn_up", {p.ffn, p.embed}},
            {"ffn_down", {p.embed, p.ffn}}};
  }
  return {{"ffn_gate_inp", {h.n_experts, p.embed}, SynthFill::random_f32},
          {"ffn_gate_exps", {h.n_experts, h.expert_ffn, p.embed}},
          {"ffn_up_exps", {h.n_experts, h.expert_ffn, p.embed}},
          {"ffn_down_exps", {h.n_experts, p.embed, h.expert_ffn}},
          {"ffn_gate_inp_shexp", {p.embed}, SynthFill::random_f32},
          {"ffn_gate_shexp", {h.expert_ffn, p.embed}},
          {"ffn_up_shexp", {h.expert_ffn, p.embed}},
          {"ffn_down_shexp", {p.embed, h.expert_ffn}}};
}

std::vector<Part> mtp_parts(const HyperParams& p) {
  return {{"nextn.eh_proj", {p.embed, 2 * p.embed}},
          {"nextn.enorm", {p.embed}, SynthFill::ones},
          {"nextn.hnorm", {p.embed}, SynthFill::ones},
          {"nextn.shared_head_norm", {p.embed}, SynthFill::ones}};
}

void add_layer(std::vector<SynthTensor>& tensors, std::int64_t layer,
               const std::vector<Part>& parts) {
  for (const Part& part : parts) {
    const auto name = part.name.empty() ? format("{}.weight", part.role) : std::string(part.name);
    tensors.push_back({format("blk.{}.{}", layer, name), part.role, layer, part.shape, part.fill});
  }
}

std::vector<SynthTensor> hybrid_tensors(const ModelShape& shape) {
  const HyperParams& p = shape.params;
  const HybridShape& h = *shape.hybrid;
  const std::vector<Part> norms{{"attn_norm", {p.embed}, SynthFill::ones},
                                {"post_attention_norm", {p.embed}, SynthFill::ones}};
  std::vector<SynthTensor> tensors;
  tensors.push_back({"token_embd.weight", "token_embd", std::nullopt, {p.vocab, p.embed}});
  for (std::int64_t layer = 0; layer <= p.n_layers; ++layer) {
    const bool is_mtp = layer == p.n_layers;
    const bool is_attention = is_mtp || (layer + 1) % attention_interval == 0;
    add_layer(tensors, layer, norms);
    add_layer(tensors, layer, is_attention ? attention_parts(p) : delta_net_parts(p, h));
    add_layer(tensors, layer, ffn_parts(p, h));
    if (is_mtp) {
      add_layer(tensors, layer, mtp_parts(p));
    }
  }
  tensors.push_back(
      {"output_norm.weight", "output_norm", std::nullopt, {p.embed}, SynthFill::ones});
  if (!shape.is_tied) {
    tensors.push_back({"output.weight", "output", std::nullopt, {p.vocab, p.embed}});
  }
  return tensors;
}

void set_hybrid_keys(formats::Metadata& metadata, const ModelShape& shape) {
  const HyperParams& p = shape.params;
  const HybridShape& h = *shape.hybrid;
  const std::string_view architecture = h.n_experts > 0 ? "qwen35moe" : "qwen35";
  metadata.set("general.architecture", architecture);
  const auto key = [architecture](std::string_view name) {
    return format("{}.{}", architecture, name);
  };
  const auto set_count = [&](std::string_view name, std::int64_t count) {
    metadata.set(key(name), static_cast<std::uint32_t>(count));
  };
  set_count("block_count", p.n_layers + 1);
  set_count("nextn_predict_layers", 1);
  set_count("context_length", p.context);
  set_count("embedding_length", p.embed);
  set_count("attention.head_count", p.n_heads);
  set_count("attention.head_count_kv", p.n_kv_heads);
  set_count("attention.key_length", p.head_dim);
  set_count("attention.value_length", p.head_dim);
  set_count("full_attention_interval", attention_interval);
  set_count("rope.dimension_count", p.head_dim / 4);
  set_count("ssm.conv_kernel", conv_taps);
  set_count("ssm.state_size", h.state_dim);
  set_count("ssm.group_count", h.n_key_heads);
  set_count("ssm.time_step_rank", h.n_value_heads);
  set_count("ssm.inner_size", h.n_value_heads * h.state_dim);
  if (h.n_experts > 0) {
    set_count("expert_count", h.n_experts);
    set_count("expert_used_count", h.n_experts_used);
    set_count("expert_feed_forward_length", h.expert_ffn);
    set_count("expert_shared_feed_forward_length", h.expert_ffn);
  } else {
    set_count("feed_forward_length", p.ffn);
  }
  metadata.set(key("attention.layer_norm_rms_epsilon"), p.norm_eps);
  metadata.set(key("rope.freq_base"), shape.rope_base);
  // Rotated pairs in thirds for time, height and width, as [11, 11, 10, 0] of 32.
  const auto n_pairs = static_cast<std::int32_t>(p.head_dim / 8);
  const std::int32_t third = (n_pairs + 1) / 3;
  const std::array<std::int32_t, 4> sections{third, third, n_pairs - 2 * third, 0};
  metadata.set_array<std::int32_t>(key("rope.dimension_sections"), sections);
}

}  // namespace

SynthArchitecture qwen_hybrid_synth() {
  return {hybrid_tensors, set_hybrid_keys};
}

}  // namespace hearth::model
