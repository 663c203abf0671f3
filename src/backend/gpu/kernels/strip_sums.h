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

/// Puts what a block says into `terms`: values [rows][16], offsets [rows][16], factors [16] and
/// those of the offsets [16]. For a single row: factor, value, factor of the offset, offset for
/// each of the 16.
DEVICE_FN void store_product(THREAD_REF(const StripProduct) product, u32 n_rows, bool is_single,
                             u32 lane, SHARED(f32) terms) {
  if (is_single) {
    if (lane % 4 == 0u) {
      UNROLL for (u32 r = 0; r < 2; ++r) {
        store4(terms + (lane + 32 * r),
               make4(product.factors[r], f32(product.values[2 * r]), product.offset_factors[r],
                     f32(product.offsets[2 * r])));
      }
    }
    return;
  }
  SHARED(f32) values = terms + (32 * (lane % 4) + lane / 4);
  SHARED(f32) offsets = values + 16 * n_rows;
  UNROLL for (u32 c = 0; c < 2; ++c) {
    if (2 * (lane % 4) + c < n_rows) {
      UNROLL for (u32 r = 0; r < 2; ++r) {
        values[16 * c + 8 * r] = f32(product.values[2 * r + c]);
        offsets[16 * c + 8 * r] = f32(product.offsets[2 * r + c]);
      }
    }
  }
  if (lane % 4 == 0u) {
    SHARED(f32) factors = terms + (32 * n_rows + lane / 4);
    UNROLL for (u32 r = 0; r < 2; ++r) {
      factors[8 * r] = product.factors[r];
      factors[8 * r + 16] = product.offset_factors[r];
    }
  }
}

/// What a block says of one result, in the order of store_product for a single row.
DEVICE_FN f32x4 load_terms(SHARED(const f32) terms, u32 n_rows, bool is_single, u32 row,
                           u32 column) {
  if (is_single) {
    return load4(terms + 4 * row);
  }
  SHARED(const f32) value = terms + (16 * column + row);
  SHARED(const f32) factor = terms + (32 * n_rows + row);
  return make4(factor[0], value[0], factor[16], value[16 * n_rows]);
}

#define STRIP_SUM_STEPS 4  // blocks whose terms are read at once

/// One result: the blocks' terms from `terms` on, in order, with the scales of the column's codes.
DEVICE_FN f32 sum_strip(SHARED(const f32) terms, u32 n_rows, bool is_single, u32 n_blocks, u32 row,
                        u32 column, bool has_offset, SHARED(const f32) scales) {
  const u32 stride = STRIP_BLOCK_FLOATS(n_rows);
  f32 sum = 0.0f;
  for (u32 block = 0; block < n_blocks; block += STRIP_SUM_STEPS) {
    f32x4 said[STRIP_SUM_STEPS];
    f32 scale[STRIP_SUM_STEPS];
    UNROLL for (u32 i = 0; i < STRIP_SUM_STEPS; ++i) {
      if (block + i < n_blocks) {
        said[i] = load_terms(terms + (block + i) * stride, n_rows, is_single, row, column);
        scale[i] = scales[block + i];
      }
    }
    UNROLL for (u32 i = 0; i < STRIP_SUM_STEPS; ++i) {
      if (block + i < n_blocks) {
        sum = fma_f32(said[i].x * scale[i], said[i].y, sum);
        sum = has_offset ? fma_f32(said[i].z * scale[i], said[i].w, sum) : sum;
      }
    }
  }
  return sum;
}

}  // namespace hearth::backend::gpu
