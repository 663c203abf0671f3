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
              "{}: expected weights that are not quantized, or FP8 with blocks (quant_method fp8, "
              "fmt e4m3, weight_block_size); found {}",
              object.place(), what);
}

}  // namespace

Result<std::optional<Float8Blocks>> read_quantization(const Config& config) {
  // MLX writes "quantization", and the same again without a method under the other name.
  for (const char* name : {"quantization_config", "quantization"}) {
    HEARTH_ASSIGN(const auto outer, config.root.find_object(name));
    HEARTH_ASSIGN(const auto inner, config.text.find_object(name));
    const auto& object = outer ? outer : inner;
    if (!object) {
      continue;
    }
    HEARTH_ASSIGN(const auto method, object->find_text("quant_method"));
    if (method != std::optional<std::string_view>("fp8")) {
      return unsupported_method(*object, method ? "quant_method " + formats::in_quotes(*method)
                                                : "no quant_method, as MLX writes it");
    }
    HEARTH_ASSIGN(const auto type, object->find_text("fmt"));
    HEARTH_ASSIGN(const auto* size, object->find_list("weight_block_size"));
    if (type.value_or("e4m3") != "e4m3" || size == nullptr || size->size() != 2) {
      return unsupported_method(*object, "another fmt, or no weight_block_size of two numbers");
    }
    std::array<std::int64_t, 2> block{};
    for (std::size_t i = 0; i < block.size(); ++i) {
      const nlohmann::json& number = (*size)[i];
      if (!number.is_number_unsigned() || number < 1 || number > max_block) {
        return unsupported_method(*object, "weight_block_size of " + describe(number));
      }
      block[i] = number.get<std::int64_t>();
    }
    return std::optional(Float8Blocks{block[0], block[1]});
  }
  return std::optional<Float8Blocks>();
}

}  // namespace hearth::model
