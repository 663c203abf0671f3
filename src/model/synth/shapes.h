#pragma once
/// The shapes that synthetic models can have: a row of numbers each.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "model/hyper_params.h"

namespace hearth::model {

/// What a hybrid model has beyond the numbers of every decoder. Every fourth layer is attention, a
/// quarter of the length of a head is rotated, and an MTP head follows.
struct HybridShape {
  std::int64_t n_key_heads = 16;
  std::int64_t n_value_heads = 0;
  std::int64_t state_dim = 128;  // of keys and values
  std::int64_t n_experts = 0;    // 0: dense
  std::int64_t n_experts_used = 0;
  std::int64_t expert_ffn = 0;  // of an expert, the shared one included
};

/// What decides the tensors of a synthetic model and their sizes. Rows of weights are multiples of
/// 256, so that every quant type fits.
struct ModelShape {
  std::string_view name;
  HyperParams params;
  float rope_base = 0;
  bool is_tied = false;               // the output head is the embedding table
  std::optional<HybridShape> hybrid;  // none: the llama architecture
};

/// By size.
std::span<const ModelShape> all_model_shapes();

/// Errors: not_found, with the list of known ones.
Result<const ModelShape*> find_model_shape(std::string_view name);

}  // namespace hearth::model
