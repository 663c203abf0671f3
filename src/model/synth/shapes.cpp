#include "model/synth/shapes.h"

#include <array>

#include "model/synth/named_rows.h"

namespace hearth::model {
namespace {

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
};

}  // namespace

std::span<const ModelShape> all_model_shapes() {
  return shapes;
}

Result<const ModelShape*> find_model_shape(std::string_view name) {
  return find_named(all_model_shapes(), "model shape", name);
}

}  // namespace hearth::model
