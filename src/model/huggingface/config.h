#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/gguf/metadata.h"
#include "model/huggingface/json_object.h"

namespace hearth::model {

// Bounds on what a config may ask for; the architectures set their own again.
inline constexpr std::int64_t max_config_count = std::int64_t{1} << 30;
inline constexpr std::int64_t max_config_layers = 512;
inline constexpr std::int64_t max_config_experts = 4096;

/// config.json. In multimodal models the language model has an object of its own in it.
struct Config {
  JsonObject root;
  JsonObject text;  // "text_config", or the root

  /// `document` must outlive the result. Errors: invalid_file.
  static Result<Config> of(const nlohmann::json& document, const std::string& file);

  [[nodiscard]] Result<std::string_view> model_type() const { return text.text("model_type"); }
};

/// `object` with the entries of `defaults`, a JSON object, that it lacks.
nlohmann::json with_defaults(const nlohmann::json& object, std::string_view defaults);

/// The rotation of one kind of layer, from rope_parameters or from the names before those.
struct RopeConfig {
  double base = 10000;
  std::optional<double> partial_factor;  // of the head that is rotated
  std::string_view type = "default";
  std::optional<JsonObject> scaling;  // the parameters of `type`
};

/// `layer_type` chooses where parameters are given per type of layer ("full_attention").
/// Errors: invalid_file.
Result<RopeConfig> read_rope_config(const Config& config, std::string_view layer_type);

/// Writes `<architecture>.rope.*`: freq_base, dimension_count where the rotation is partial, and
/// the scaling. Errors: invalid_file; unsupported for a type of scaling that GGUF has no keys for.
Result<void> add_rope_keys(const RopeConfig& rope, std::int64_t head_dim,
                           const std::string& architecture, formats::Metadata& metadata);

/// Divisors of the rotary frequencies that scaling of type llama3 means, [head_dim / 2]; empty for
/// other types. Errors: not_found and invalid_file for its parameters.
Result<std::vector<float>> frequency_divisors(const RopeConfig& rope, std::int64_t head_dim);

}  // namespace hearth::model
