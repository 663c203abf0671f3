/// The families. A new one is a few tables and a row of the list at the end.
/// Source of names: docs/formats/huggingface.md.

#include <algorithm>
#include <string>

#include "base/fail.h"
#include "formats/gguf/place.h"
#include "model/huggingface/family.h"
#include "model/huggingface/family_keys.h"
#include "model/huggingface/transforms.h"

namespace hearth::model {
namespace {

using enum AppliesTo;

// ----- keys

constexpr std::array decoder_keys{
    KeyRule{"max_position_embeddings", "context_length"},
    KeyRule{"hidden_size", "embedding_length"},
    KeyRule{"num_attention_heads", "attention.head_count"},
    KeyRule{"num_key_value_heads", "attention.head_count_kv", KeyKind::count, false},
    KeyRule{"rms_norm_eps", "attention.layer_norm_rms_epsilon", KeyKind::number},
    KeyRule{"intermediate_size", "feed_forward_length", KeyKind::count, false},
};

constexpr std::array llama_keys{
    KeyRule{"vocab_size", "vocab_size"},
    KeyRule{"sliding_window", "attention.sliding_window", KeyKind::count, false},
};

constexpr std::array gemma3_keys{
    KeyRule{"sliding_window", "attention.sliding_window"},
    KeyRule{"final_logit_softcapping", "final_logit_softcapping", KeyKind::number, false},
};

// The larger models write down only what differs.
constexpr std::string_view gemma3_defaults = R"({
  "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "rms_norm_eps": 1e-6,
  "max_position_embeddings": 131072, "rope_theta": 1e6, "query_pre_attn_scalar": 256,
  "sliding_window": 4096, "tie_word_embeddings": true})";

constexpr std::array expert_keys{
    KeyRule{"num_experts_per_tok", "expert_used_count"},
    KeyRule{"moe_intermediate_size", "expert_feed_forward_length"},
    KeyRule{"shared_expert_intermediate_size", "expert_shared_feed_forward_length", KeyKind::count,
            false},
};

// ----- tensors

constexpr std::array plain_ends{
    TensorRule{"embed_tokens.weight", "token_embd.weight"},
    TensorRule{"norm.weight", "output_norm.weight"},
    TensorRule{"lm_head.weight", "output.weight", nullptr, every_layer, false},
};

constexpr std::array zero_centred_ends{
    TensorRule{"embed_tokens.weight", "token_embd.weight"},
    TensorRule{"norm.weight", "output_norm.weight", zero_centred},
    TensorRule{"lm_head.weight", "output.weight", nullptr, every_layer, false},
};

constexpr std::array dense_ffn{
    TensorRule{"mlp.gate_proj.weight", "ffn_gate.weight"},
    TensorRule{"mlp.up_proj.weight", "ffn_up.weight"},
    TensorRule{"mlp.down_proj.weight", "ffn_down.weight"},
};

// Experts come one by one or fused, and both occur in one folder; MLX stacks them (switch_mlp).
constexpr std::array expert_layer{
    TensorRule{"mlp.gate.weight", "ffn_gate_inp.weight"},
    TensorRule{"mlp.experts.*.gate_proj.weight", "ffn_gate_exps.weight", nullptr, every_layer,
               false},
    TensorRule{"mlp.experts.*.up_proj.weight", "ffn_up_exps.weight", nullptr, every_layer, false},
    TensorRule{"mlp.experts.*.down_proj.weight", "ffn_down_exps.weight"},
    TensorRule{"mlp.experts.gate_up_proj", "ffn_gate_exps.weight", gate_half, every_layer, true,
               ExpertLayout::split},
    TensorRule{"mlp.experts.gate_up_proj", "ffn_up_exps.weight", up_half, every_layer, true,
               ExpertLayout::split},
    TensorRule{"mlp.experts.gate_up_proj", "ffn_gate_up_exps.weight", nullptr, every_layer, false,
               ExpertLayout::stored},
    TensorRule{"mlp.experts.down_proj", "ffn_down_exps.weight"},
    TensorRule{"mlp.switch_mlp.gate_proj.weight", "ffn_gate_exps.weight", nullptr, every_layer,
               false},
    TensorRule{"mlp.switch_mlp.up_proj.weight", "ffn_up_exps.weight", nullptr, every_layer, false},
    TensorRule{"mlp.switch_mlp.down_proj.weight", "ffn_down_exps.weight"},
};

constexpr std::array shared_expert{
    TensorRule{"mlp.shared_expert.gate_proj.weight", "ffn_gate_shexp.weight"},
    TensorRule{"mlp.shared_expert.up_proj.weight", "ffn_up_shexp.weight"},
    TensorRule{"mlp.shared_expert.down_proj.weight", "ffn_down_shexp.weight"},
    TensorRule{"mlp.shared_expert_gate.weight", "ffn_gate_inp_shexp.weight", row_vector},
};

constexpr std::array llama_layer{
    TensorRule{"input_layernorm.weight", "attn_norm.weight"},
    TensorRule{"self_attn.q_proj.weight", "attn_q.weight", query_pairs},
    TensorRule{"self_attn.k_proj.weight", "attn_k.weight", key_pairs},
    TensorRule{"self_attn.v_proj.weight", "attn_v.weight"},
    TensorRule{"self_attn.o_proj.weight", "attn_output.weight"},
    TensorRule{"self_attn.q_proj.bias", "attn_q.bias", query_pairs, every_layer, false},
    TensorRule{"self_attn.k_proj.bias", "attn_k.bias", key_pairs, every_layer, false},
    TensorRule{"self_attn.v_proj.bias", "attn_v.bias", nullptr, every_layer, false},
    TensorRule{"self_attn.o_proj.bias", "attn_output.bias", nullptr, every_layer, false},
    TensorRule{"post_attention_layernorm.weight", "ffn_norm.weight"},
};

constexpr std::array gemma3_layer{
    TensorRule{"input_layernorm.weight", "attn_norm.weight", zero_centred},
    TensorRule{"self_attn.q_proj.weight", "attn_q.weight"},
    TensorRule{"self_attn.k_proj.weight", "attn_k.weight"},
    TensorRule{"self_attn.v_proj.weight", "attn_v.weight"},
    TensorRule{"self_attn.o_proj.weight", "attn_output.weight"},
    TensorRule{"self_attn.q_norm.weight", "attn_q_norm.weight", zero_centred},
    TensorRule{"self_attn.k_norm.weight", "attn_k_norm.weight", zero_centred},
    TensorRule{"post_attention_layernorm.weight", "post_attention_norm.weight", zero_centred},
    TensorRule{"pre_feedforward_layernorm.weight", "ffn_norm.weight", zero_centred},
    TensorRule{"post_feedforward_layernorm.weight", "post_ffw_norm.weight", zero_centred},
};

constexpr std::array qwen3_layer{
    TensorRule{"input_layernorm.weight", "attn_norm.weight"},
    TensorRule{"self_attn.q_proj.weight", "attn_q.weight"},
    TensorRule{"self_attn.k_proj.weight", "attn_k.weight"},
    TensorRule{"self_attn.v_proj.weight", "attn_v.weight"},
    TensorRule{"self_attn.o_proj.weight", "attn_output.weight"},
    TensorRule{"self_attn.q_norm.weight", "attn_q_norm.weight"},
    TensorRule{"self_attn.k_norm.weight", "attn_k_norm.weight"},
    TensorRule{"post_attention_layernorm.weight", "ffn_norm.weight"},
};

// The layers of hybrids with gated attention; here post_attention_norm is the norm before the FFN.
constexpr std::array hybrid_layer{
    TensorRule{"input_layernorm.weight", "attn_norm.weight", zero_centred},
    TensorRule{"self_attn.q_proj.weight", "attn_q.weight", nullptr, full_attention_layers},
    TensorRule{"self_attn.k_proj.weight", "attn_k.weight", nullptr, full_attention_layers},
    TensorRule{"self_attn.v_proj.weight", "attn_v.weight", nullptr, full_attention_layers},
    TensorRule{"self_attn.o_proj.weight", "attn_output.weight", nullptr, full_attention_layers},
    TensorRule{"self_attn.q_norm.weight", "attn_q_norm.weight", zero_centred,
               full_attention_layers},
    TensorRule{"self_attn.k_norm.weight", "attn_k_norm.weight", zero_centred,
               full_attention_layers},
    TensorRule{"post_attention_layernorm.weight", "post_attention_norm.weight", zero_centred},
};

constexpr std::array qwen35_recurrent{
    TensorRule{"linear_attn.in_proj_qkv.weight", "attn_qkv.weight", tiled_qkv, recurrent_layers},
    TensorRule{"linear_attn.in_proj_z.weight", "attn_gate.weight", tiled_rows, recurrent_layers},
    TensorRule{"linear_attn.in_proj_b.weight", "ssm_beta.weight", tiled_heads, recurrent_layers},
    TensorRule{"linear_attn.in_proj_a.weight", "ssm_alpha.weight", tiled_heads, recurrent_layers},
    TensorRule{"linear_attn.conv1d.weight", "ssm_conv1d.weight", tiled_convolution,
               recurrent_layers},
    TensorRule{"linear_attn.dt_bias", "ssm_dt.bias", tiled_heads, recurrent_layers},
    TensorRule{"linear_attn.A_log", "ssm_a", tiled_decay, recurrent_layers},
    TensorRule{"linear_attn.norm.weight", "ssm_norm.weight", nullptr, recurrent_layers},
    TensorRule{"linear_attn.out_proj.weight", "ssm_out.weight", tiled_columns, recurrent_layers},
};

// Value heads stay grouped.
constexpr std::array qwen3next_recurrent{
    TensorRule{"linear_attn.in_proj_qkvz.weight", "attn_qkv.weight", qkv_of_fused,
               recurrent_layers},
    TensorRule{"linear_attn.in_proj_qkvz.weight", "attn_gate.weight", z_of_fused, recurrent_layers},
    TensorRule{"linear_attn.in_proj_ba.weight", "ssm_ba.weight", nullptr, recurrent_layers},
    TensorRule{"linear_attn.conv1d.weight", "ssm_conv1d.weight", convolution, recurrent_layers},
    TensorRule{"linear_attn.dt_bias", "ssm_dt.bias", nullptr, recurrent_layers},
    TensorRule{"linear_attn.A_log", "ssm_a", decay, recurrent_layers},
    TensorRule{"linear_attn.norm.weight", "ssm_norm.weight", nullptr, recurrent_layers},
    TensorRule{"linear_attn.out_proj.weight", "ssm_out.weight", nullptr, recurrent_layers},
};

constexpr std::array hybrid_draft{
    TensorRule{"fc.weight", "nextn.eh_proj.weight"},
    TensorRule{"pre_fc_norm_embedding.weight", "nextn.enorm.weight", zero_centred},
    TensorRule{"pre_fc_norm_hidden.weight", "nextn.hnorm.weight", zero_centred},
    TensorRule{"norm.weight", "nextn.shared_head_norm.weight", zero_centred},
    TensorRule{"embed_tokens.weight", "nextn.embed_tokens.weight", nullptr, every_layer, false},
    TensorRule{"lm_head.weight", "nextn.shared_head_head.weight", nullptr, every_layer, false},
};

// ----- the list

constexpr std::array families{
    Family{.model_types = {"llama", "mistral"},
           .architecture = "llama",
           .keys = {decoder_keys, llama_keys},
           .add_keys = add_llama_keys,
           .ends = plain_ends,
           .layer = {llama_layer, dense_ffn}},
    Family{.model_types = {"gemma3_text"},
           .architecture = "gemma3",
           .defaults = gemma3_defaults,
           .keys = {decoder_keys, gemma3_keys},
           .add_keys = add_gemma3_keys,
           .ends = zero_centred_ends,
           .layer = {gemma3_layer, dense_ffn}},
    Family{.model_types = {"qwen3"},
           .architecture = "qwen3",
           .keys = {decoder_keys},
           .add_keys = add_qwen3_keys,
           .ends = plain_ends,
           .layer = {qwen3_layer, dense_ffn}},
    Family{.model_types = {"qwen3_moe"},
           .architecture = "qwen3moe",
           .keys = {decoder_keys, expert_keys},
           .add_keys = add_qwen3moe_keys,
           .ends = plain_ends,
           .layer = {qwen3_layer, expert_layer}},
    Family{.model_types = {"qwen3_next"},
           .architecture = "qwen3next",
           .keys = {decoder_keys, expert_keys},
           .add_keys = add_qwen3next_keys,
           .ends = zero_centred_ends,
           .layer = {hybrid_layer, qwen3next_recurrent, expert_layer, shared_expert},
           .draft = hybrid_draft},
    Family{.model_types = {"qwen3_5_text", "qwen3_5"},
           .architecture = "qwen35",
           .keys = {decoder_keys},
           .add_keys = add_qwen35_keys,
           .ends = zero_centred_ends,
           .layer = {hybrid_layer, qwen35_recurrent, dense_ffn},
           .draft = hybrid_draft},
    Family{.model_types = {"qwen3_5_moe_text", "qwen3_5_moe"},
           .architecture = "qwen35moe",
           .keys = {decoder_keys, expert_keys},
           .add_keys = add_qwen35moe_keys,
           .ends = zero_centred_ends,
           .layer = {hybrid_layer, qwen35_recurrent, expert_layer, shared_expert},
           .draft = hybrid_draft},
};

}  // namespace

Result<const Family*> find_family(const Config& config) {
  HEARTH_ASSIGN(const auto type, config.model_type());
  std::string known;
  for (const Family& family : families) {
    if (!type.empty() && std::ranges::find(family.model_types, type) != family.model_types.end()) {
      return &family;
    }
    known += format("{}{}", known.empty() ? "" : ", ", family.model_types.front());
  }
  return fail(ErrorCode::unsupported, "{}: model_type {} is not supported; known: {}",
              config.text.place(), formats::in_quotes(type), known);
}

const Family* find_family_of_architecture(std::string_view architecture) {
  const auto* found = std::ranges::find(families, architecture, &Family::architecture);
  return found == families.end() ? nullptr : found;
}

}  // namespace hearth::model
