#include "model/huggingface/family_keys.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include <nlohmann/json.hpp>

#include "base/fail.h"

namespace hearth::model {
namespace {

using formats::Metadata;

std::string below(std::string_view architecture, std::string_view key) {
  return std::string(architecture).append(".").append(key);
}

constexpr std::int64_t usual_period = 6;
constexpr std::int32_t max_section = 4096;

/// How many layers a period of local layers and one global one has.
Result<std::int64_t> gemma3_period(const Config& config) {
  for (const char* name : {"sliding_window_pattern", "_sliding_window_pattern"}) {
    HEARTH_ASSIGN(const auto period, config.text.find_count(name, 1, max_config_layers));
    if (period) {
      return *period;
    }
  }
  return usual_period;
}

/// Errors: unsupported when layer_types is not what the period says.
Result<void> check_gemma3_layers(const Config& config, std::int64_t period) {
  HEARTH_ASSIGN(const auto* types, config.text.find_list("layer_types"));
  for (std::size_t i = 0; types != nullptr && i < types->size(); ++i) {
    const bool is_global = (static_cast<std::int64_t>(i) + 1) % period == 0;
    const std::string_view expected = is_global ? "full_attention" : "sliding_attention";
    if ((*types)[i] != expected) {
      return fail(ErrorCode::unsupported,
                  "{}: layer_types[{}]: expected {} in a period of {}, "
                  "found {}",
                  config.text.place(), i, expected, period, describe((*types)[i]));
    }
  }
  return {};
}

/// What all qwen3 models share. Errors: unsupported for what they could have and never do.
Result<void> add_qwen3_rope(const Config& config, const Dimensions& dimensions,
                            const std::string& architecture, Metadata& metadata) {
  HEARTH_ASSIGN(const auto slides, config.text.find_flag("use_sliding_window"));
  if (slides.value_or(false)) {
    return fail(ErrorCode::unsupported, "{}: use_sliding_window: expected false, found true",
                config.text.place());
  }
  HEARTH_ASSIGN(auto rope, read_rope_config(config, "full_attention"));
  if (dimensions.n_value_heads > 0 && !rope.partial_factor) {
    rope.partial_factor = 0.25;  // the default of the reference implementation for hybrids
  }
  return add_rope_keys(rope, dimensions.head_dim, architecture, metadata);
}

Result<void> add_expert_keys(const Config& config, const Dimensions& dimensions,
                             const std::string& architecture, Metadata& metadata) {
  metadata.set(below(architecture, "expert_count"),
               static_cast<std::uint32_t>(dimensions.n_experts));
  HEARTH_ASSIGN(const auto normalises, config.text.find_flag("norm_topk_prob"));
  HEARTH_ASSIGN(const auto step,
                config.text.find_count("decoder_sparse_step", 0, max_config_count));
  HEARTH_ASSIGN(const auto* dense, config.text.find_list("mlp_only_layers"));
  if (!normalises.value_or(true) || step.value_or(1) != 1 ||
      (dense != nullptr && !dense->empty())) {
    return fail(ErrorCode::unsupported,
                "{}: expected norm_topk_prob true, decoder_sparse_step 1 and no mlp_only_layers",
                config.text.place());
  }
  return {};
}

/// Where the full attention layers are, and the sizes of the others.
Result<void> add_recurrent_keys(const Config& config, const Dimensions& dimensions,
                                const std::string& architecture, Metadata& metadata) {
  const auto set = [&](std::string_view key, std::int64_t value) {
    metadata.set(below(architecture, key), static_cast<std::uint32_t>(value));
  };
  HEARTH_ASSIGN(const auto taps, config.text.count("linear_conv_kernel_dim", 1, 64));
  set("ssm.conv_kernel", taps);
  set("ssm.state_size", dimensions.key_dim);
  set("ssm.group_count", dimensions.n_key_heads);
  set("ssm.time_step_rank", dimensions.n_value_heads);
  set("ssm.inner_size", dimensions.n_value_heads * dimensions.value_dim);
  const auto& layers = dimensions.layers;
  const auto first_full = std::ranges::find(layers, LayerKind::attention) - layers.begin();
  const std::int64_t interval = first_full + 1;
  bool is_regular = true;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const bool is_full = (static_cast<std::int64_t>(i) + 1) % interval == 0;
    is_regular = is_regular && is_full == (layers[i] == LayerKind::attention);
  }
  if (is_regular) {
    set("full_attention_interval", interval);
    return {};
  }
  std::vector<std::uint8_t> flags;
  for (const LayerKind kind : layers) {
    flags.push_back(kind == LayerKind::recurrent ? 1 : 0);
  }
  metadata.set(below(architecture, "attention.recurrent_layers"),
               formats::Array{formats::ValueType::boolean, flags.size(),
                              std::as_bytes(std::span<const std::uint8_t>(flags))});
  return {};
}

/// Positions in three axes: [t, h, w] and a fourth that is always 0.
Result<void> add_sections(const Config& config, const std::string& architecture,
                          Metadata& metadata) {
  constexpr std::size_t n_axes = 3;
  std::array<std::int32_t, n_axes + 1> sections{11, 11, 10, 0};  // the reference's default
  for (const char* name : {"rope_parameters", "rope_scaling"}) {
    HEARTH_ASSIGN(const auto parameters, config.text.find_object(name));
    const nlohmann::json* listed = nullptr;
    if (parameters) {
      HEARTH_ASSIGN(listed, parameters->find_list("mrope_section"));
    }
    for (std::size_t i = 0; listed != nullptr && i < std::max(listed->size(), n_axes); ++i) {
      const bool is_size = i < std::min(listed->size(), n_axes) &&
                           (*listed)[i].is_number_unsigned() && (*listed)[i] <= max_section;
      if (!is_size) {
        return fail(ErrorCode::invalid_file, "{}: mrope_section: expected {} sizes, found {}",
                    parameters->place(), n_axes, describe(*listed));
      }
      sections[i] = (*listed)[i].get<std::int32_t>();
    }
  }
  metadata.set_array<std::int32_t>(below(architecture, "rope.dimension_sections"), sections);
  return {};
}

}  // namespace

Result<void> add_llama_keys(const Config& config, const Dimensions& dimensions,
                            Metadata& metadata) {
  HEARTH_ASSIGN(const auto rope, read_rope_config(config, "full_attention"));
  metadata.set("llama.rope.dimension_count", static_cast<std::uint32_t>(dimensions.head_dim));
  return add_rope_keys(rope, dimensions.head_dim, "llama", metadata);
}

Result<void> add_gemma3_keys(const Config& config, const Dimensions& dimensions,
                             Metadata& metadata) {
  constexpr double usual_local_base = 10000;
  HEARTH_ASSIGN(const auto rope, read_rope_config(config, "full_attention"));
  HEARTH_TRY(add_rope_keys(rope, dimensions.head_dim, "gemma3", metadata));
  HEARTH_ASSIGN(const auto local, read_rope_config(config, "sliding_attention"));
  HEARTH_ASSIGN(const auto old_local_base, config.text.find_number("rope_local_base_freq"));
  const bool has_parameters = config.text.find("rope_parameters") != nullptr;
  const double local_base = old_local_base.value_or(has_parameters ? local.base : usual_local_base);
  if (local_base != usual_local_base) {
    metadata.set("gemma3.rope.freq_base_swa", static_cast<float>(local_base));
  }
  HEARTH_ASSIGN(const auto period, gemma3_period(config));
  HEARTH_TRY(check_gemma3_layers(config, period));
  if (period != usual_period) {
    metadata.set("gemma3.attention.sliding_window_pattern", static_cast<std::uint32_t>(period));
  }
  HEARTH_ASSIGN(const auto scale, config.text.find_number("query_pre_attn_scalar"));
  if (scale && *scale > 0 && *scale != static_cast<double>(dimensions.head_dim)) {
    metadata.set("gemma3.attention.scale", static_cast<float>(1 / std::sqrt(*scale)));
  }
  return {};
}

Result<void> add_qwen3_keys(const Config& config, const Dimensions& d, Metadata& metadata) {
  return add_qwen3_rope(config, d, "qwen3", metadata);
}

Result<void> add_qwen3moe_keys(const Config& config, const Dimensions& d, Metadata& metadata) {
  HEARTH_TRY(add_qwen3_rope(config, d, "qwen3moe", metadata));
  return add_expert_keys(config, d, "qwen3moe", metadata);
}

Result<void> add_qwen3next_keys(const Config& config, const Dimensions& d, Metadata& metadata) {
  HEARTH_TRY(add_qwen3_rope(config, d, "qwen3next", metadata));
  HEARTH_TRY(add_expert_keys(config, d, "qwen3next", metadata));
  return add_recurrent_keys(config, d, "qwen3next", metadata);
}

Result<void> add_qwen35_keys(const Config& config, const Dimensions& d, Metadata& metadata) {
  HEARTH_TRY(add_qwen3_rope(config, d, "qwen35", metadata));
  HEARTH_TRY(add_sections(config, "qwen35", metadata));
  return add_recurrent_keys(config, d, "qwen35", metadata);
}

Result<void> add_qwen35moe_keys(const Config& config, const Dimensions& d, Metadata& metadata) {
  HEARTH_TRY(add_qwen3_rope(config, d, "qwen35moe", metadata));
  HEARTH_TRY(add_sections(config, "qwen35moe", metadata));
  HEARTH_TRY(add_expert_keys(config, d, "qwen35moe", metadata));
  return add_recurrent_keys(config, d, "qwen35moe", metadata);
}

}  // namespace hearth::model
