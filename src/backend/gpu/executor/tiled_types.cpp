#include "backend/gpu/executor/tiled_types.h"

#include <algorithm>
#include <array>

#include "backend/gpu/kernels/strips.h"
#include "backend/gpu/kernels/weight_tiles.h"
#include "quant/all_types.h"
#include "quant/registry.h"

namespace hearth::backend::gpu {
namespace {

struct TiledType {
  DType dtype;
  u32 number;  // StripParams::type
};

#define HEARTH_TILED_TYPE(name, bytes, unused) \
  TiledType{.dtype = quant::name::info.dtype, .number = STRIP_##name},
constexpr std::array tiled_types{TILED_TYPES(HEARTH_TILED_TYPE, )};
#undef HEARTH_TILED_TYPE

#define HEARTH_CHECK_BYTES(name, bytes, unused) \
  static_assert(quant::name::info.block_bytes == (bytes));
TILED_TYPES(HEARTH_CHECK_BYTES, )
#undef HEARTH_CHECK_BYTES

}  // namespace

std::optional<u32> tiled_type(DType type) {
  const auto* const found = std::ranges::find(tiled_types, type, &TiledType::dtype);
  return found == tiled_types.end() ? std::nullopt : std::optional(found->number);
}

bool has_tiles(const TensorView& tensor) {
  if (tensor.shape.rank() < 2 || !tiled_type(tensor.dtype)) {
    return false;
  }
  const auto& info = quant::info(tensor.dtype);
  return tensor.shape.back() % (info.block_weights * TILE_BLOCKS(info.block_bytes)) == 0;
}

}  // namespace hearth::backend::gpu
