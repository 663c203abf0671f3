#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/huggingface/json_object.h"

namespace hearth::model {

enum class MlxMode : std::uint8_t { affine, mxfp4, nvfp4 };

/// How the weights of one module are packed.
struct MlxPacking {
  MlxMode mode{};
  std::int64_t bits = 0;
  std::int64_t group = 0;  // weights that share a scale
};

/// The object "quantization" that MLX writes into config.json.
struct MlxQuantization {
  MlxPacking usual;
  /// What differs, by path of the module ("model.layers.3.mlp.gate"); nullopt: not quantized.
  std::map<std::string, std::optional<MlxPacking>, std::less<>> modules;

  /// nullopt for a module that the object says is not quantized.
  [[nodiscard]] std::optional<MlxPacking> packing_of(std::string_view module) const;
};

/// Errors: invalid_file for bits or a group that MLX does not have; unsupported for another mode
/// than affine, mxfp4 and nvfp4.
Result<MlxQuantization> read_mlx_quantization(const JsonObject& object);

}  // namespace hearth::model
