#pragma once
/// Around tiles (kernels/strip_tile.h): how rows become codes in shared memory, and how what tiles
/// say becomes results.

#include "backend/gpu/kernels/input_values.h"
#include "backend/gpu/kernels/strip_tile.h"

namespace hearth::backend::gpu {

/// Words from one row of n_blocks blocks of codes to the next.
DEVICE_FN u32 strip_row_words(u32 n_blocks) {
  return n_blocks * STRIP_BLOCK_WORDS + STRIP_ROW_GAP;
}

/// 256 values, eight neighbours in each lane, become a block of codes, its digits and its scale.
DEVICE_FN void quantize_block(f32x4 low, f32x4 high, u32 lane, SHARED(u32) codes, SHARED(u8) digits,
                              SHARED(f32) scale) {
  const f32 values[LANE_VALUES] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  u32 magnitude = 0;
  UNROLL for (u32 i = 0; i < LANE_VALUES; ++i) {
    magnitude = max_u32(magnitude, bits_of_f32(values[i]) & 0x7fffffffu);
  }
  UNROLL for (u32 distance = 1; distance < 32; distance *= 2) {
    magnitude = max_u32(magnitude, shuffle_xor(magnitude, distance));
  }
  const BlockScale factors = block_scale(magnitude);
  u32 packed[2] = {0, 0};
  i32 sum = 0;
  if (factors.inverse != 0.0f) {  // 0 * NaN is no code
    UNROLL for (u32 i = 0; i < LANE_VALUES; ++i) {
      const i32 code = code_of(values[i], factors.inverse);
      packed[i / 4] |= (u32(code) & 255u) << (8 * (i % 4));
      sum += code;
    }
  }
  sum = sum + i32(shuffle_xor(u32(sum), 1));
  // Run lane / 4 of 32, of which the lane has words 2 (lane % 4) and the next.
  const u32 at = 16 * (lane / 8) + 4 * (lane % 4) + 2 * (lane / 4 % 2);
  codes[at] = packed[0];
  codes[at + 1] = packed[1];
  if (lane % 2 == 0u) {
    digits[lane / 2] = u8(u32(sum) & 63u);
    digits[16 + lane / 2] = u8(u32(sum >> 6) & 255u);
  }
  if (lane == 0u) {
    scale[0] = factors.scale;
  }
}

/// Puts what a block says into `terms`: values [16][rows], offsets [16][rows], factors [16] and
/// those of the offsets [16].
DEVICE_FN void store_product(THREAD_REF(const StripProduct) product, u32 n_rows, u32 lane,
                             SHARED(f32) terms) {
  SHARED(f32) factors = terms + 32 * n_rows;
  UNROLL for (u32 c = 0; c < 2; ++c) {
    const u32 column = 2 * (lane % 4) + c;
    if (column < n_rows) {
      UNROLL for (u32 r = 0; r < 2; ++r) {
        SHARED(f32) at = terms + ((lane / 4 + 8 * r) * n_rows + column);
        at[0] = f32(product.values[2 * r + c]);
        at[16 * n_rows] = f32(product.offsets[2 * r + c]);
      }
    }
  }
  if (lane % 4 == 0u) {
    UNROLL for (u32 r = 0; r < 2; ++r) {
      factors[lane / 4 + 8 * r] = product.factors[r];
      factors[16 + lane / 4 + 8 * r] = product.offset_factors[r];
    }
  }
}

#define STRIP_SUM_STEPS 4  // blocks whose terms are read at once

/// One result: the blocks' terms from `terms` on, in order, with the scales of the column's codes.
DEVICE_FN f32 sum_strip(SHARED(const f32) terms, u32 n_rows, u32 n_blocks, u32 row, u32 column,
                        bool has_offset, SHARED(const f32) scales) {
  SHARED(const f32) from = terms + (row * n_rows + column);
  SHARED(const f32) factors = terms + (32 * n_rows + row);
  const u32 stride = STRIP_BLOCK_FLOATS(n_rows);
  f32 sum = 0.0f;
  for (u32 block = 0; block < n_blocks; block += STRIP_SUM_STEPS) {
    f32 scale[STRIP_SUM_STEPS];
    f32 value[STRIP_SUM_STEPS];
    f32 offset_scale[STRIP_SUM_STEPS];
    f32 offset[STRIP_SUM_STEPS];
    UNROLL for (u32 i = 0; i < STRIP_SUM_STEPS; ++i) {
      const u32 at = min_u32(block + i, n_blocks - 1u) * stride;
      const f32 x_scale = scales[min_u32(block + i, n_blocks - 1u)];
      scale[i] = factors[at] * x_scale;
      value[i] = from[at];
      offset_scale[i] = factors[at + 16] * x_scale;
      offset[i] = from[at + 16 * n_rows];
    }
    UNROLL for (u32 i = 0; i < STRIP_SUM_STEPS; ++i) {
      if (block + i < n_blocks) {
        sum = fma_f32(scale[i], value[i], sum);
        sum = has_offset ? fma_f32(offset_scale[i], offset[i], sum) : sum;
      }
    }
  }
  return sum;
}

}  // namespace hearth::backend::gpu
