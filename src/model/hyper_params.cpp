#include "model/hyper_params.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <variant>

#include "base/fail.h"

namespace hearth::model {
namespace {

// Bounds on what a file may ask for: generous against real models, small against memory.
constexpr std::int64_t max_layers = 512;
constexpr std::int64_t max_features = 1 << 20;
constexpr std::int64_t max_heads = 4096;
constexpr std::int64_t max_context = std::int64_t{1} << 30;

Failure out_of_range(const ArchKeys& keys, std::string_view name, std::int64_t value,
                     std::int64_t low, std::int64_t high) {
  return fail(ErrorCode::invalid_file, "{}: {} is {}, expected {} to {}", keys.metadata().file(),
              keys.key(name), value, low, high);
}

constexpr std::string_view kv_heads_key = "attention.head_count_kv";

/// The one number of heads that a list has in all layers that have any.
Result<std::int64_t> common_kv_heads(const ArchKeys& keys, std::span<const std::int64_t> by_layer,
                                     KvHeads kv_heads, std::int64_t n_heads) {
  const std::int64_t most = std::ranges::max(by_layer);
  for (std::size_t layer = 0; layer < by_layer.size(); ++layer) {
    const std::int64_t n = by_layer[layer];
    const std::string entry = format("{}[{}]", kv_heads_key, layer);
    if (n > n_heads || n < (kv_heads == KvHeads::in_every_layer ? 1 : 0)) {
      return out_of_range(keys, entry, n, kv_heads == KvHeads::in_every_layer ? 1 : 0, n_heads);
    }
    if (n != 0 && n != most) {
      return fail(ErrorCode::unsupported, "{}: {} is {}, expected {} as in another layer",
                  keys.metadata().file(), keys.key(entry), n, most);
    }
  }
  if (most == 0) {
    return fail(ErrorCode::invalid_file, "{}: {} has {} entries, all 0; expected a layer with some",
                keys.metadata().file(), keys.key(kv_heads_key), by_layer.size());
  }
  return most;
}

Result<std::int64_t> read_kv_heads(const ArchKeys& keys, KvHeads kv_heads, std::int64_t n_heads) {
  HEARTH_ASSIGN(const auto by_layer, find_kv_heads_by_layer(keys));
  return by_layer ? common_kv_heads(keys, *by_layer, kv_heads, n_heads)
                  : keys.count_or(kv_heads_key, n_heads, 1, n_heads);
}

}  // namespace

Result<std::int64_t> ArchKeys::count(std::string_view name, std::int64_t low,
                                     std::int64_t high) const {
  HEARTH_ASSIGN(const auto value, get<std::int64_t>(name));
  if (value < low || value > high) {
    return out_of_range(*this, name, value, low, high);
  }
  return value;
}

Result<std::int64_t> ArchKeys::count_or(std::string_view name, std::int64_t fallback,
                                        std::int64_t low, std::int64_t high) const {
  return metadata_.entry(key(name)) == nullptr ? Result<std::int64_t>(fallback)
                                               : count(name, low, high);
}

Result<float> ArchKeys::positive_or(std::string_view name, float fallback) const {
  HEARTH_ASSIGN(const auto value, get_or<float>(name, fallback));
  if (!std::isfinite(value) || value <= 0) {
    return fail(ErrorCode::invalid_file, "{}: {} is {}, expected a finite number above 0",
                metadata_.file(), key(name), value);
  }
  return value;
}

Result<std::int64_t> read_prediction_blocks(const ArchKeys& keys) {
  HEARTH_ASSIGN(const auto n_blocks, keys.count("block_count", 1, max_layers));
  return keys.count_or("nextn_predict_layers", 0, 0, n_blocks - 1);
}

Result<std::optional<std::vector<std::int64_t>>> find_kv_heads_by_layer(const ArchKeys& keys) {
  const std::string key = keys.key(kv_heads_key);
  const auto* entry = keys.metadata().entry(key);
  const auto* list = entry == nullptr ? nullptr : std::get_if<formats::Array>(&entry->value);
  if (list == nullptr) {
    return std::nullopt;
  }
  HEARTH_ASSIGN(const auto n_blocks, keys.count("block_count", 1, max_layers));
  HEARTH_ASSIGN(const auto n_prediction, read_prediction_blocks(keys));
  const std::uint64_t n_entries = list->count;
  if (std::cmp_not_equal(n_entries, n_blocks) &&
      std::cmp_not_equal(n_entries, n_blocks - n_prediction)) {
    return fail(ErrorCode::invalid_file,
                "{}: {} has {} entries, expected one for each of {} layers", keys.metadata().file(),
                key, n_entries, n_blocks - n_prediction);
  }
  return keys.metadata().find_array<std::int64_t>(key);
}

Result<HyperParams> read_hyper_params(const ArchKeys& keys, std::int64_t vocab, KvHeads kv_heads) {
  HyperParams params;
  params.vocab = vocab;
  HEARTH_ASSIGN(params.n_layers, keys.count("block_count", 1, max_layers));
  HEARTH_ASSIGN(params.context, keys.count("context_length", 1, max_context));
  HEARTH_ASSIGN(params.embed, keys.count("embedding_length", 1, max_features));
  // A model whose layers all choose among experts need not say how wide a dense one would be.
  const bool has_experts = keys.metadata().entry(keys.key("expert_count")) != nullptr;
  HEARTH_ASSIGN(params.ffn, has_experts ? keys.count_or("feed_forward_length", 0, 0, max_features)
                                        : keys.count("feed_forward_length", 1, max_features));
  HEARTH_ASSIGN(params.n_heads, keys.count("attention.head_count", 1, max_heads));
  HEARTH_ASSIGN(params.n_kv_heads, read_kv_heads(keys, kv_heads, params.n_heads));
  if (params.n_heads % params.n_kv_heads != 0) {
    return fail(ErrorCode::invalid_file, "{}: {} is {}, expected a divisor of the {} heads",
                keys.metadata().file(), keys.key(kv_heads_key), params.n_kv_heads, params.n_heads);
  }
  // Older files name the head size only as the number of rotated dimensions, or not at all.
  HEARTH_ASSIGN(const auto rotated, keys.count_or("rope.dimension_count",
                                                  params.embed / params.n_heads, 1, max_features));
  HEARTH_ASSIGN(params.head_dim, keys.count_or("attention.key_length", rotated, 1, max_features));
  HEARTH_ASSIGN(const auto value_length,
                keys.count_or("attention.value_length", params.head_dim, 1, max_features));
  if (value_length != params.head_dim) {
    return fail(ErrorCode::unsupported, "{}: {} is {}, expected the key length {}",
                keys.metadata().file(), keys.key("attention.value_length"), value_length,
                params.head_dim);
  }
  HEARTH_ASSIGN(params.norm_eps, keys.positive_or("attention.layer_norm_rms_epsilon", 1e-5f));
  return params;
}

Result<graph::RopeParams> read_rope(const ArchKeys& keys, const HyperParams& params) {
  graph::RopeParams rope;
  rope.head_dim = params.head_dim;
  HEARTH_ASSIGN(rope.n_rot,
                keys.count_or("rope.dimension_count", params.head_dim, 2, params.head_dim));
  if (rope.n_rot % 2 != 0) {
    return fail(ErrorCode::invalid_file, "{}: {} is {}, expected an even number",
                keys.metadata().file(), keys.key("rope.dimension_count"), rope.n_rot);
  }
  HEARTH_ASSIGN(rope.base, keys.positive_or("rope.freq_base", 10000.0f));
  HEARTH_ASSIGN(const auto legacy_factor, keys.positive_or("rope.scale_linear", 1.0f));
  HEARTH_ASSIGN(const auto factor, keys.positive_or("rope.scaling.factor", legacy_factor));
  HEARTH_ASSIGN(const auto type, keys.get_or<std::string_view>("rope.scaling.type", "linear"));
  if (type == "none") {
    return rope;
  }
  rope.position_scale = 1.0f / factor;
  if (type == "linear") {
    return rope;
  }
  if (type != "yarn") {
    return fail(ErrorCode::unsupported, "{}: {} is '{}', expected none, linear or yarn",
                keys.metadata().file(), keys.key("rope.scaling.type"), type);
  }
  graph::Yarn yarn;
  HEARTH_ASSIGN(yarn.ext_factor, keys.get_or<float>("rope.scaling.yarn_ext_factor", 1.0f));
  HEARTH_ASSIGN(yarn.attn_factor, keys.positive_or("rope.scaling.attn_factor", 1.0f));
  // A checkpoint that names its attention factor means the whole of it, logarithmic term included.
  HEARTH_ASSIGN(yarn.magnitude, keys.get_or<float>("rope.scaling.yarn_attn_factor", 0.0f));
  HEARTH_ASSIGN(yarn.beta_fast, keys.positive_or("rope.scaling.yarn_beta_fast", 32.0f));
  HEARTH_ASSIGN(yarn.beta_slow, keys.positive_or("rope.scaling.yarn_beta_slow", 1.0f));
  HEARTH_ASSIGN(const auto original_context, keys.count_or("rope.scaling.original_context_length",
                                                           params.context, 1, max_context));
  yarn.original_context = static_cast<float>(original_context);
  rope.yarn = yarn;
  return rope;
}

}  // namespace hearth::model
