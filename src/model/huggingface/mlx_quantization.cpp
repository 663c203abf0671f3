#include "model/huggingface/mlx_quantization.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "formats/gguf/place.h"
#include "quant/affine.h"

namespace hearth::model {
namespace {

/// What a mode has where nothing is said, and what the float modes must have.
struct ModeRow {
  std::string_view name;
  MlxPacking packing;
};

constexpr std::array modes{
    ModeRow{"affine", {MlxMode::affine, 4, 64}},
    ModeRow{"mxfp4", {MlxMode::mxfp4, 4, 32}},
    ModeRow{"nvfp4", {MlxMode::nvfp4, 4, 16}},
};

constexpr std::int64_t max_bits = 32;
constexpr std::int64_t max_group = 1 << 20;

bool is_known(const MlxPacking& packing, const ModeRow& mode) {
  if (packing.mode == MlxMode::affine) {
    return quant::affine_type({packing.bits, packing.group, DType::f32}).has_value();
  }
  return packing.bits == mode.packing.bits && packing.group == mode.packing.group;
}

Result<MlxPacking> read_packing(const JsonObject& object) {
  HEARTH_ASSIGN(const auto name, object.find_text("mode"));
  const auto* mode = std::ranges::find(modes, name.value_or("affine"), &ModeRow::name);
  if (mode == modes.end()) {
    return fail(ErrorCode::unsupported, "{}: mode: expected affine, mxfp4 or nvfp4, found {}",
                object.place(), formats::in_quotes(*name));
  }
  MlxPacking packing = mode->packing;
  HEARTH_ASSIGN(const auto bits, object.find_count("bits", 1, max_bits));
  HEARTH_ASSIGN(const auto group, object.find_count("group_size", 1, max_group));
  packing.bits = bits.value_or(packing.bits);
  packing.group = group.value_or(packing.group);
  if (!is_known(packing, *mode)) {
    return fail(ErrorCode::invalid_file, "{}: expected {}, found {} bits in groups of {}",
                object.place(),
                packing.mode == MlxMode::affine
                    ? std::string("2, 3, 4, 5, 6 or 8 bits in groups of 32, 64 or 128")
                    : format("{} bits in groups of {}, which {} has", mode->packing.bits,
                             mode->packing.group, mode->name),
                packing.bits, packing.group);
  }
  return packing;
}

}  // namespace

std::optional<MlxPacking> MlxQuantization::packing_of(std::string_view module) const {
  const auto found = modules.find(module);
  return found == modules.end() ? usual : found->second;
}

Result<MlxQuantization> read_mlx_quantization(const JsonObject& object) {
  MlxQuantization quantization;
  HEARTH_ASSIGN(quantization.usual, read_packing(object));
  for (const auto& [module, value] : object.value().items()) {
    if (value.is_object()) {
      HEARTH_ASSIGN(const auto differing,
                    JsonObject::of(value, object.place() + ": " + formats::in_quotes(module)));
      HEARTH_ASSIGN(quantization.modules[module], read_packing(differing));
    } else if (value.is_boolean() && !value.get<bool>()) {
      quantization.modules[module] = std::nullopt;
    }
  }
  return quantization;
}

}  // namespace hearth::model
