#include "model/synth/shapes.h"

#include <array>

#include "model/synth/named_rows.h"

namespace hearth::model {
namespace {

/// What all Qwen3.5 and Qwen3.6 models have in common.
constexpr ModelShape qwen(std::string_view name, const HyperParams& sizes,
                          const HybridShape& hybrid, bool is_tied) {
  HyperParams params = sizes;
  params.context = 262144;
  params.head_dim = 256;
  params.vocab = 248320;
  params.norm_eps = 1e-6f;
  return {name, params, 1e7f, is_tied, hybrid};
}

constexpr std::array shapes{
    // Small enough for tests, with all parts of the others.
    ModelShape{.name = "llama-tiny",
               .params = {.n_layers = 8,
                          .context = 8192,
                          .embed = 256,
                          .ffn = 512,
                          .n_heads = 4,
                          .n_kv_heads = 1,
                          .head_dim = 64,
                          .vocab = 2048,
                          .norm_eps = 1e-5f},
               .rope_base = 10000,
               .is_tied = false},
    // The sizes of Llama 3.2 1B.
    ModelShape{.name = "llama-1b",
               .params = {.n_layers = 16,
                          .context = 131072,
                          .embed = 2048,
                          .ffn = 8192,
                          .n_heads = 32,
                          .n_kv_heads = 8,
                          .head_dim = 64,
                          .vocab = 128256,
                          .norm_eps = 1e-5f},
               .rope_base = 500000,
               .is_tied = true},
    // The sizes of Qwen3 4B.
    ModelShape{.name = "llama-4b",
               .params = {.n_layers = 36,
                          .context = 40960,
                          .embed = 2560,
                          .ffn = 9728,
                          .n_heads = 32,
                          .n_kv_heads = 8,
                          .head_dim = 128,
                          .vocab = 151936,
                          .norm_eps = 1e-6f},
               .rope_base = 1000000,
               .is_tied = true},
    // The sizes of Llama 3.1 8B.
    ModelShape{.name = "llama-8b",
               .params = {.n_layers = 32,
                          .context = 131072,
                          .embed = 4096,
                          .ffn = 14336,
                          .n_heads = 32,
                          .n_kv_heads = 8,
                          .head_dim = 128,
                          .vocab = 128256,
                          .norm_eps = 1e-5f},
               .rope_base = 500000,
               .is_tied = false},
    // Small enough for tests, with all parts of the others.
    ModelShape{.name = "qwen3.5-tiny",
               .params = {.n_layers = 4,
                          .context = 8192,
                          .embed = 256,
                          .ffn = 512,
                          .n_heads = 4,
                          .n_kv_heads = 1,
                          .head_dim = 64,
                          .vocab = 2048,
                          .norm_eps = 1e-6f},
               .rope_base = 10000,
               .is_tied = true,
               .hybrid = HybridShape{.n_key_heads = 2, .n_value_heads = 4, .state_dim = 64}},
    ModelShape{.name = "qwen3.5-tiny-moe",
               .params = {.n_layers = 4,
                          .context = 8192,
                          .embed = 256,
                          .n_heads = 4,
                          .n_kv_heads = 1,
                          .head_dim = 64,
                          .vocab = 2048,
                          .norm_eps = 1e-6f},
               .rope_base = 10000,
               .is_tied = false,
               .hybrid = HybridShape{.n_key_heads = 2,
                                     .n_value_heads = 4,
                                     .state_dim = 64,
                                     .n_experts = 8,
                                     .n_experts_used = 2,
                                     .expert_ffn = 256}},
    qwen("qwen3.5-0.8b",
         {.n_layers = 24, .embed = 1024, .ffn = 3584, .n_heads = 8, .n_kv_heads = 2},
         {.n_value_heads = 16}, true),
    qwen("qwen3.5-2b", {.n_layers = 24, .embed = 2048, .ffn = 6144, .n_heads = 8, .n_kv_heads = 2},
         {.n_value_heads = 16}, true),
    qwen("qwen3.5-4b", {.n_layers = 32, .embed = 2560, .ffn = 9216, .n_heads = 16, .n_kv_heads = 4},
         {.n_value_heads = 32}, true),
    qwen("qwen3.5-9b",
         {.n_layers = 32, .embed = 4096, .ffn = 12288, .n_heads = 16, .n_kv_heads = 4},
         {.n_value_heads = 32}, false),
    qwen("qwen3.5-27b",
         {.n_layers = 64, .embed = 5120, .ffn = 17408, .n_heads = 24, .n_kv_heads = 4},
         {.n_value_heads = 48}, false),
    qwen("qwen3.5-35b-a3b", {.n_layers = 40, .embed = 2048, .n_heads = 16, .n_kv_heads = 2},
         {.n_value_heads = 32, .n_experts = 256, .n_experts_used = 8, .expert_ffn = 512}, false),
    qwen("qwen3.5-122b-a10b", {.n_layers = 48, .embed = 3072, .n_heads = 32, .n_kv_heads = 2},
         {.n_value_heads = 64, .n_experts = 256, .n_experts_used = 8, .expert_ffn = 1024}, false),
    qwen("qwen3.5-397b-a17b", {.n_layers = 60, .embed = 4096, .n_heads = 32, .n_kv_heads = 2},
         {.n_value_heads = 64, .n_experts = 512, .n_experts_used = 10, .expert_ffn = 1024}, false),
};

}  // namespace

std::span<const ModelShape> all_model_shapes() {
  return shapes;
}

Result<const ModelShape*> find_model_shape(std::string_view name) {
  return find_named(all_model_shapes(), "model shape", name);
}

}  // namespace hearth::model
