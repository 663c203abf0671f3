#pragma once
/// The types of matrices that become tiles on devices with instructions for them
/// (kernels/weight_tiles.h).

#include <cstdint>
#include <optional>

#include "tensor/dtype.h"
#include "tensor/tensor_view.h"

namespace hearth::backend::gpu {

/// StripParams::type of a type that has tiles; nothing for others.
[[nodiscard]] std::optional<std::uint32_t> tiled_type(DType type);

/// Whether a tensor is of matrices that have tiles: of such a type, with rows of whole tiles.
[[nodiscard]] bool has_tiles(const TensorView& tensor);

}  // namespace hearth::backend::gpu
