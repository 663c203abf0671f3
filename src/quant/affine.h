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

/// The type of GGUF files that has such codes with a scale and an offset: Q4_1 for up to 4 bits,
/// Q5_1 for 5. nullopt for more bits, and for types that are not affine.
std::optional<DType> affine_file_type(DType dtype);

/// Bytes of `n_bytes` of blocks of `dtype`, which has an affine_file_type(), in that type.
std::int64_t affine_file_bytes(DType dtype, std::int64_t n_bytes);

/// The same weights in blocks of affine_file_type(dtype). False if they would not be the same,
/// because a scale or an offset is no half.
[[nodiscard]] bool repack_for_file(DType dtype, Bytes blocks, std::span<std::byte> out);

}  // namespace hearth::quant
