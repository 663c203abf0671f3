#include "model/huggingface/config.h"

#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "formats/gguf/place.h"

namespace hearth::model {
namespace {

constexpr double max_rope_base = 1e30;

/// Numbers of a scaling and their keys below `rope.scaling.`.
struct ScalingKey {
  std::string_view from;
  std::string_view to;
};
constexpr std::array yarn_numbers{
    ScalingKey{"beta_fast", "yarn_beta_fast"},
    ScalingKey{"beta_slow", "yarn_beta_slow"},
    ScalingKey{"attention_factor", "yarn_attn_factor"},
};

Result<double> positive(const JsonObject& object, std::string_view name) {
  HEARTH_ASSIGN(const double value, object.number(name));
  if (value <= 0) {
    return fail(ErrorCode::invalid_file, "{}: {}: expected a number above 0, found {}",
                object.place(), formats::in_quotes(name), value);
  }
  return value;
}

/// The object that says how to scale; nullopt when nothing does.
Result<std::optional<JsonObject>> rope_parameters(const Config& config,
                                                  std::string_view layer_type) {
  HEARTH_ASSIGN(auto parameters, config.text.find_object("rope_parameters"));
  if (!parameters) {
    return config.text.find_object("rope_scaling");
  }
  HEARTH_ASSIGN(auto of_layer_type, parameters->find_object(layer_type));
  return of_layer_type ? of_layer_type : parameters;
}

void set_number(formats::Metadata& metadata, const std::string& key, double value) {
  metadata.set(key, static_cast<float>(value));
}

Result<void> add_yarn_keys(const JsonObject& scaling, const std::string& prefix,
                           formats::Metadata& metadata) {
  HEARTH_ASSIGN(const auto original,
                scaling.find_count("original_max_position_embeddings", 1, max_config_count));
  if (original) {
    metadata.set(prefix + "original_context_length", static_cast<std::uint32_t>(*original));
  }
  for (const ScalingKey& key : yarn_numbers) {
    HEARTH_ASSIGN(const auto value, scaling.find_number(key.from));
    if (value) {
      set_number(metadata, prefix + std::string(key.to), *value);
    }
  }
  return {};
}

}  // namespace

Result<Config> Config::of(const nlohmann::json& document, const std::string& file) {
  HEARTH_ASSIGN(auto root, JsonObject::of(document, file));
  HEARTH_ASSIGN(auto text, root.find_object("text_config"));
  return Config{root, text ? *text : root};
}

nlohmann::json with_defaults(const nlohmann::json& object, std::string_view defaults) {
  nlohmann::json all = object;
  const auto fallback = nlohmann::json::parse(defaults);
  for (const auto& [name, value] : fallback.items()) {
    all.emplace(name, value);
  }
  return all;
}

Result<RopeConfig> read_rope_config(const Config& config, std::string_view layer_type) {
  RopeConfig rope;
  HEARTH_ASSIGN(rope.scaling, rope_parameters(config, layer_type));
  // Each may stand in the object or, in older files, beside it.
  for (const JsonObject& place : {config.text, rope.scaling.value_or(config.text)}) {
    HEARTH_ASSIGN(const auto base, place.find_number("rope_theta"));
    rope.base = base.value_or(rope.base);
    HEARTH_ASSIGN(const auto partial, place.find_number("partial_rotary_factor"));
    rope.partial_factor = partial ? partial : rope.partial_factor;
  }
  if (rope.scaling) {
    HEARTH_ASSIGN(const auto old_type, rope.scaling->find_text("type"));
    HEARTH_ASSIGN(const auto type, rope.scaling->find_text("rope_type"));
    rope.type = type ? *type : old_type.value_or(rope.type);
  }
  const double partial = rope.partial_factor.value_or(1);
  if (!(rope.base > 0 && rope.base < max_rope_base && partial > 0 && partial <= 1)) {
    return fail(ErrorCode::invalid_file,
                "{}: expected rope_theta above 0 and partial_rotary_factor above 0 and at most 1, "
                "found {} and {}",
                config.text.place(), rope.base, partial);
  }
  return rope;
}

Result<void> add_rope_keys(const RopeConfig& rope, std::int64_t head_dim,
                           const std::string& architecture, formats::Metadata& metadata) {
  const std::string prefix = architecture + ".rope.";
  set_number(metadata, prefix + "freq_base", rope.base);
  if (rope.partial_factor) {
    const auto n_rotated = static_cast<double>(head_dim) * *rope.partial_factor;
    metadata.set(prefix + "dimension_count", static_cast<std::uint32_t>(n_rotated));
  }
  // llama3 becomes a tensor. mrope has no scaling, and its sections are the family's business.
  if (rope.type == "default" || rope.type == "mrope" || rope.type == "llama3") {
    return {};
  }
  if (rope.type != "linear" && rope.type != "yarn") {
    return fail(ErrorCode::unsupported,
                "{}: rope_type: expected default, linear, llama3 or yarn, found {}",
                rope.scaling->place(), formats::in_quotes(rope.type));
  }
  metadata.set(prefix + "scaling.type", rope.type);
  HEARTH_ASSIGN(const double factor, positive(*rope.scaling, "factor"));
  set_number(metadata, prefix + "scaling.factor", factor);
  return rope.type == "yarn" ? add_yarn_keys(*rope.scaling, prefix + "scaling.", metadata)
                             : Result<void>();
}

Result<std::vector<float>> frequency_divisors(const RopeConfig& rope, std::int64_t head_dim) {
  std::vector<float> divisors;
  if (rope.type != "llama3") {
    return divisors;
  }
  HEARTH_ASSIGN(const double factor, positive(*rope.scaling, "factor"));
  HEARTH_ASSIGN(const double low, positive(*rope.scaling, "low_freq_factor"));
  HEARTH_ASSIGN(const double high, positive(*rope.scaling, "high_freq_factor"));
  HEARTH_ASSIGN(const double context, positive(*rope.scaling, "original_max_position_embeddings"));
  if (high <= low) {
    return fail(ErrorCode::invalid_file,
                "{}: expected high_freq_factor above low_freq_factor, found {} and {}",
                rope.scaling->place(), high, low);
  }
  for (std::int64_t i = 0; i < head_dim / 2; ++i) {
    const double exponent = 2.0 * static_cast<double>(i) / static_cast<double>(head_dim);
    const double wavelength = 2 * std::numbers::pi * std::pow(rope.base, exponent);
    const double smooth = (context / wavelength - low) / (high - low);
    const double divisor = wavelength < context / high  ? 1
                           : wavelength > context / low ? factor
                                                        : 1 / ((1 - smooth) / factor + smooth);
    divisors.push_back(static_cast<float>(divisor));
  }
  return divisors;
}

}  // namespace hearth::model
