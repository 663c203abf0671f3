#include "model/huggingface/dimensions.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "formats/gguf/place.h"

namespace hearth::model {
namespace {

constexpr std::int64_t max_heads = 4096;
constexpr std::int64_t max_head_dim = 4096;

/// The lists of layer_types by their two words; nullopt for others.
std::optional<LayerKind> layer_kind_of(const nlohmann::json& word) {
  if (word == "linear_attention") {
    return LayerKind::recurrent;
  }
  return word == "full_attention" || word == "sliding_attention"
             ? std::optional(LayerKind::attention)
             : std::nullopt;
}

bool has_recurrent_layers(const Family& family) {
  const auto rules_recurrent = [](std::span<const TensorRule> rules) {
    return std::ranges::find(rules, AppliesTo::recurrent_layers, &TensorRule::applies_to) !=
           rules.end();
  };
  return std::ranges::any_of(family.layer, rules_recurrent);
}

bool has_experts(const Family& family) {
  return std::ranges::any_of(family.layer, [](std::span<const TensorRule> rules) {
    return std::ranges::find(rules, std::string_view("ffn_gate_inp.weight"), &TensorRule::to) !=
           rules.end();
  });
}

Result<std::vector<LayerKind>> listed_layers(const Config& config, const nlohmann::json& types,
                                             std::int64_t n_layers) {
  if (std::cmp_not_equal(types.size(), n_layers)) {
    return fail(ErrorCode::invalid_file, "{}: layer_types: expected {} entries, found {}",
                config.text.place(), n_layers, types.size());
  }
  std::vector<LayerKind> layers;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const auto kind = layer_kind_of(types[i]);
    if (!kind) {
      return fail(ErrorCode::unsupported,
                  "{}: layer_types[{}]: expected full_attention, sliding_attention or "
                  "linear_attention, found {}",
                  config.text.place(), i, describe(types[i]));
    }
    layers.push_back(*kind);
  }
  return layers;
}

Result<std::vector<LayerKind>> read_layers(const Config& config, const Family& family) {
  HEARTH_ASSIGN(const auto n_layers, config.text.count("num_hidden_layers", 1, max_config_layers));
  HEARTH_ASSIGN(const auto* types, config.text.find_list("layer_types"));
  if (types != nullptr) {
    return listed_layers(config, *types, n_layers);
  }
  std::vector<LayerKind> layers(static_cast<std::size_t>(n_layers), LayerKind::attention);
  if (has_recurrent_layers(family)) {
    HEARTH_ASSIGN(const auto interval,
                  config.text.find_count("full_attention_interval", 1, max_config_layers));
    for (std::int64_t i = 0; i < n_layers; ++i) {
      if ((i + 1) % interval.value_or(4) != 0) {
        layers[static_cast<std::size_t>(i)] = LayerKind::recurrent;
      }
    }
  }
  return layers;
}

Result<void> read_recurrent_sizes(const Config& config, Dimensions& dimensions) {
  const JsonObject& text = config.text;
  HEARTH_ASSIGN(dimensions.n_key_heads, text.count("linear_num_key_heads", 1, max_heads));
  HEARTH_ASSIGN(dimensions.n_value_heads, text.count("linear_num_value_heads", 1, max_heads));
  HEARTH_ASSIGN(dimensions.key_dim, text.count("linear_key_head_dim", 1, max_head_dim));
  HEARTH_ASSIGN(dimensions.value_dim, text.count("linear_value_head_dim", 1, max_head_dim));
  if (dimensions.n_value_heads % dimensions.n_key_heads != 0) {
    return fail(ErrorCode::invalid_file,
                "{}: linear_num_value_heads: expected a multiple of the {} key heads, found {}",
                text.place(), dimensions.n_key_heads, dimensions.n_value_heads);
  }
  return {};
}

/// The number of experts, which has two names.
Result<std::int64_t> read_n_experts(const Config& config) {
  HEARTH_ASSIGN(const auto n_local,
                config.text.find_count("num_local_experts", 1, max_config_experts));
  return n_local ? Result<std::int64_t>(*n_local)
                 : config.text.count("num_experts", 1, max_config_experts);
}

Result<void> add_key(const Config& config, const KeyRule& rule, const std::string& prefix,
                     formats::Metadata& metadata) {
  const std::string key = prefix + std::string(rule.to);
  if (!rule.is_required && config.text.find(rule.from) == nullptr) {
    return {};
  }
  if (rule.kind == KeyKind::number) {
    HEARTH_ASSIGN(const double value, config.text.number(rule.from));
    metadata.set(key, static_cast<float>(value));
  } else {
    HEARTH_ASSIGN(const auto value, config.text.count(rule.from, 0, max_config_count));
    metadata.set(key, static_cast<std::uint32_t>(value));
  }
  return {};
}

}  // namespace

Result<Dimensions> read_dimensions(const Config& config, const Family& family) {
  const JsonObject& text = config.text;
  Dimensions dimensions;
  HEARTH_ASSIGN(dimensions.layers, read_layers(config, family));
  HEARTH_ASSIGN(dimensions.n_heads, text.count("num_attention_heads", 1, max_heads));
  HEARTH_ASSIGN(const auto n_kv_heads, text.find_count("num_key_value_heads", 1, max_heads));
  dimensions.n_kv_heads = n_kv_heads.value_or(dimensions.n_heads);
  HEARTH_ASSIGN(const auto embed, text.count("hidden_size", 1, max_config_count));
  HEARTH_ASSIGN(const auto head_dim, text.find_count("head_dim", 1, max_head_dim));
  dimensions.head_dim = head_dim.value_or(embed / dimensions.n_heads);
  if (dimensions.head_dim < 1 || dimensions.head_dim > max_head_dim) {
    return fail(ErrorCode::invalid_file, "{}: expected heads of 1 to {} numbers, found {}",
                text.place(), max_head_dim, dimensions.head_dim);
  }
  if (has_experts(family)) {
    HEARTH_ASSIGN(dimensions.n_experts, read_n_experts(config));
  }
  if (has_recurrent_layers(family)) {
    HEARTH_TRY(read_recurrent_sizes(config, dimensions));
  }
  return dimensions;
}

Result<formats::Metadata> metadata_of_config(const Config& config, const Family& family,
                                             const Dimensions& dimensions,
                                             std::int64_t n_draft_layers) {
  formats::Metadata metadata(config.root.place());
  const std::string prefix = std::string(family.architecture) + ".";
  const auto set_count = [&](std::string_view key, std::int64_t value) {
    metadata.set(prefix + std::string(key), static_cast<std::uint32_t>(value));
  };
  metadata.set("general.architecture", family.architecture);
  metadata.set("general.type", std::string_view("model"));
  set_count("block_count", static_cast<std::int64_t>(dimensions.layers.size()) + n_draft_layers);
  if (n_draft_layers > 0) {
    set_count("nextn_predict_layers", n_draft_layers);
  }
  for (const auto& rules : family.keys) {
    for (const KeyRule& rule : rules) {
      HEARTH_TRY(add_key(config, rule, prefix, metadata));
    }
  }
  set_count("attention.key_length", dimensions.head_dim);
  set_count("attention.value_length", dimensions.head_dim);
  HEARTH_TRY(family.add_keys(config, dimensions, metadata));
  return metadata;
}

}  // namespace hearth::model
