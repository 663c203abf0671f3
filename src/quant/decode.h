#pragma once
/// Blocks to floats, for a type known at compile time. quant/registry.h has the same by number.

#include <cstddef>
#include <cstdint>
#include <span>

#include "quant/quant_type.h"

namespace hearth::quant {

/// weight[i] = scale * sub_scale * (zero + code[i]) + offset * sub_offset.
/// Both products are exact in f32 (a half scale, a scale of at most 8 bits and a code of at most 8
/// bits fit in 24), so the only rounding is that of the sum, and the result has the bits of the
/// format's own formula whatever the order in which that multiplies. The exceptions are affine
/// groups with F32 scales, which round the product too, as their formula says.
template <HasIntegerForm T>
void decode_block(const typename T::Block& block, std::span<float, T::info.block_weights> weights) {
  constexpr std::size_t group = T::integers.sub;  // weights that share a sub_scale
  IntegerBlock integers;
  T::to_integers(block, integers);
  for (std::size_t first = 0; first < T::info.block_weights; first += group) {
    const std::size_t unit = first / T::integers.unit;
    const float scale = integers.scales[unit] * static_cast<float>(integers.sub_scales[first / 16]);
    const std::int8_t* codes = &integers.codes[first];
    float* out = &weights[first];
    if constexpr (T::integers.has_offset) {
      const float offset =
          integers.offsets[unit] * static_cast<float>(integers.sub_offsets[first / 16]);
      for (std::size_t i = 0; i < group; ++i) {
        out[i] = scale * static_cast<float>(T::integers.code_zero + codes[i]) + offset;
      }
    } else {
      for (std::size_t i = 0; i < group; ++i) {
        out[i] = scale * static_cast<float>(T::integers.code_zero + codes[i]);
      }
    }
  }
}

template <HasOwnDecode T>
void decode_block(const typename T::Block& block, std::span<float, T::info.block_weights> weights) {
  T::decode(block, weights);
}

/// weights [blocks.size() * block_weights]
template <FloatDecodable T>
void decode_blocks(std::span<const typename T::Block> blocks, std::span<float> weights) {
  constexpr std::size_t n = T::info.block_weights;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    decode_block<T>(blocks[i], std::span<float, n>(&weights[i * n], n));
  }
}

}  // namespace hearth::quant
