#include "model/huggingface/quantization.h"

#include <array>

#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "formats/gguf/place.h"

namespace hearth::model {
namespace {

constexpr std::int64_t max_block = 1 << 16;

Failure unsupported_method(const JsonObject& object, std::string_view what) {
  return fail(ErrorCode::unsupported,
              "{}: expected weights that are not quantized, MLX's groups, or FP8 with blocks "
              "(quant_method fp8, fmt e4m3, weight_block_size); found {}",
              object.place(), what);
}

Result<Float8Blocks> read_float8_blocks(const JsonObject& object) {
  HEARTH_ASSIGN(const auto type, object.find_text("fmt"));
  HEARTH_ASSIGN(const auto* size, object.find_list("weight_block_size"));
  if (type.value_or("e4m3") != "e4m3" || size == nullptr || size->size() != 2) {
    return unsupported_method(object, "another fmt, or no weight_block_size of two numbers");
  }
  std::array<std::int64_t, 2> block{};
  for (std::size_t i = 0; i < block.size(); ++i) {
    const nlohmann::json& number = (*size)[i];
    if (!number.is_number_unsigned() || number < 1 || number > max_block) {
      return unsupported_method(object, "weight_block_size of " + describe(number));
    }
    block[i] = number.get<std::int64_t>();
  }
  return Float8Blocks{block[0], block[1]};
}

/// The object of that name, in config.json itself or of the language model.
Result<std::optional<JsonObject>> find_outer_first(const Config& config, const char* name) {
  HEARTH_ASSIGN(auto outer, config.root.find_object(name));
  return outer ? Result<std::optional<JsonObject>>(std::move(outer))
               : config.text.find_object(name);
}

}  // namespace

Result<Quantization> read_quantization(const Config& config) {
  Quantization quantization;
  // MLX writes "quantization", and the same again under the other name, where others have a method.
  HEARTH_ASSIGN(auto object, find_outer_first(config, "quantization"));
  if (!object) {
    HEARTH_ASSIGN(object, find_outer_first(config, "quantization_config"));
  }
  if (!object) {
    return quantization;
  }
  HEARTH_ASSIGN(const auto method, object->find_text("quant_method"));
  if (!method) {
    HEARTH_ASSIGN(quantization.mlx, read_mlx_quantization(*object));
  } else if (*method == "fp8") {
    HEARTH_ASSIGN(quantization.float8, read_float8_blocks(*object));
  } else {
    return unsupported_method(*object, "quant_method " + formats::in_quotes(*method));
  }
  return quantization;
}

}  // namespace hearth::model
