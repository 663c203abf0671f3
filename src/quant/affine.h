#pragma once
/// MLX's affine groups to blocks of quant/types/affine.h: the same numbers in another order.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "tensor/dtype.h"

namespace hearth::quant {

struct AffineFormat {
  std::int64_t bits = 0;
  std::int64_t group = 0;  // weights that share a scale and an offset
  DType scale_type{};

  bool operator==(const AffineFormat&) const = default;
};

/// The type whose blocks hold such groups exactly: for 2, 3, 4, 5, 6 or 8 bits and groups of 32, 64
/// or 128 with scales in F32, F16 or BF16. Groups of 32 have F32 scales in their blocks, whatever
/// they are stored as. nullopt for other numbers.
std::optional<DType> affine_type(const AffineFormat& format);

/// One row of a matrix as MLX stores it. Code k is bits [k * bits, (k + 1) * bits) of `codes`, the
/// lowest bit of the first byte being bit 0; weight k has scale and offset number k / group.
struct AffineRow {
  Bytes codes;
  Bytes scales;   // of format.scale_type, at any alignment
  Bytes offsets;  // likewise
};

/// Writes the blocks of affine_type(format) for the weights from number `first` on, as many as fit
/// `blocks`. Both are multiples of the block, and the row has all of them.
void pack_affine(const AffineFormat& format, const AffineRow& row, std::size_t first,
                 std::span<std::byte> blocks);

}  // namespace hearth::quant
