/// A synthetic model of the llama architecture (model/arch/llama.cpp).

#include <array>
#include <cstddef>

#include "base/format.h"
#include "model/synth/synth_tensor.h"

namespace hearth::model {
namespace {

struct Part {
  std::string_view role;
  Shape shape;  // [out, in], or [n] of a norm
};

/// Vectors are norms.
SynthFill fill_of(const Shape& shape) {
  return shape.rank() == 1 ? SynthFill::ones : SynthFill::random;
}

std::array<Part, 9> parts_of_layer(const HyperParams& p) {
  const std::int64_t q = p.n_heads * p.head_dim;
  const std::int64_t kv = p.n_kv_heads * p.head_dim;
  return {{{"attn_norm", {p.embed}},
           {"attn_q", {q, p.embed}},
           {"attn_k", {kv, p.embed}},
           {"attn_v", {kv, p.embed}},
           {"attn_output", {p.embed, q}},
           {"ffn_norm", {p.embed}},
           {"ffn_gate", {p.ffn, p.embed}},
           {"ffn_up", {p.ffn, p.embed}},
           {"ffn_down", {p.embed, p.ffn}}}};
}

std::vector<SynthTensor> llama_tensors(const ModelShape& shape) {
  const HyperParams& p = shape.params;
  std::vector<SynthTensor> tensors;
  const auto add_end = [&tensors](std::string_view role, const Shape& dims) {
    tensors.push_back({format("{}.weight", role), role, std::nullopt, dims, fill_of(dims)});
  };
  add_end("token_embd", {p.vocab, p.embed});
  for (std::int64_t layer = 0; layer < p.n_layers; ++layer) {
    for (const Part& part : parts_of_layer(p)) {
      tensors.push_back({format("blk.{}.{}.weight", layer, part.role), part.role, layer, part.shape,
                         fill_of(part.shape)});
    }
  }
  add_end("output_norm", {p.embed});
  if (!shape.is_tied) {
    add_end("output", {p.vocab, p.embed});
  }
  return tensors;
}

void set_llama_keys(formats::Metadata& metadata, const ModelShape& shape) {
  const HyperParams& p = shape.params;
  metadata.set("general.architecture", std::string_view("llama"));
  const auto set_count = [&metadata](std::string_view key, std::int64_t count) {
    metadata.set(format("llama.{}", key), static_cast<std::uint32_t>(count));
  };
  set_count("block_count", p.n_layers);
  set_count("context_length", p.context);
  set_count("embedding_length", p.embed);
  set_count("feed_forward_length", p.ffn);
  set_count("attention.head_count", p.n_heads);
  set_count("attention.head_count_kv", p.n_kv_heads);
  set_count("attention.key_length", p.head_dim);
  set_count("attention.value_length", p.head_dim);
  set_count("rope.dimension_count", p.head_dim);
  set_count("vocab_size", p.vocab);
  metadata.set("llama.attention.layer_norm_rms_epsilon", p.norm_eps);
  metadata.set("llama.rope.freq_base", shape.rope_base);
}

}  // namespace

SynthArchitecture llama_synth() {
  return {llama_tensors, set_llama_keys};
}

}  // namespace hearth::model
