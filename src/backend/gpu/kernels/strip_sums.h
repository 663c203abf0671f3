#pragma once
/// Around tiles (kernels/strip_tile.h): how rows become codes in shared memory, and how what tiles
/// say becomes results.

#include "backend/gpu/kernels/input_values.h"
#include "backend/gpu/kernels/row_tile.h"
#include "backend/gpu/kernels/strip_tile.h"

namespace hearth::backend::gpu {

/// Words from one row of n_blocks blocks of codes to the next.
DEVICE_FN u32 strip_row_words(u32 n_blocks) {
  return n_blocks * STRIP_BLOCK_WORDS + STRIP_ROW_GAP;
}

/// 256 values, eight neighbours in each lane, as codes.
struct BlockCodes {
  u32 packed[2];
  i32 sum;  // of the 16 codes that two lanes have
  f32 scale;
};

/// The low bytes of four words.
DEVICE_FN u32 pack_low_bytes(u32 a, u32 b, u32 c, u32 d) {
  return pick_bytes(pick_bytes(a, b, 0x0040u), pick_bytes(c, d, 0x0040u), 0x5410u);
}

DEVICE_FN BlockCodes codes_of_block(f32x4 low, f32x4 high) {
  const f32 values[LANE_VALUES] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  u32 magnitude = 0;
  UNROLL for (u32 i = 0; i < LANE_VALUES; ++i) {
    magnitude = max_u32(magnitude, bits_of_f32(values[i]) & 0x7fffffffu);
  }
  const BlockScale factors = block_scale(simd_max_u32(magnitude));
  BlockCodes codes = {{0, 0}, 0, factors.scale};
  if (factors.inverse != 0.0f) {  // 0 * NaN is no code
    u32 bits[LANE_VALUES];
    UNROLL for (u32 i = 0; i < LANE_VALUES; ++i) {
      bits[i] = code_bits(values[i], factors.inverse);
    }
    codes.packed[0] = pack_low_bytes(bits[0], bits[1], bits[2], bits[3]);
    codes.packed[1] = pack_low_bytes(bits[4], bits[5], bits[6], bits[7]);
  }
  const i32 eight = dot4_i8(codes.packed[0], 0x01010101u, dot4_i8(codes.packed[1], 0x01010101u, 0));
  codes.sum = eight + i32(shuffle_xor(u32(eight), 1));
  return codes;
}

/// Where a lane's codes begin in a block of codes: of run lane / 4 of 32 it has words 2 (lane % 4)
/// and the next.
#define STRIP_LANE_WORD(lane) (16 * ((lane) / 8) + 4 * ((lane) % 4) + 2 * ((lane) / 4 % 2))

DEVICE_FN void store_codes(THREAD_REF(const BlockCodes) block, u32 lane, SHARED(u32) codes,
                           SHARED(f32) scale) {
  const u32 at = STRIP_LANE_WORD(lane);
  codes[at] = block.packed[0];
  codes[at + 1] = block.packed[1];
  if (lane == 0u) {
    scale[0] = block.scale;
  }
}

/// They become a block of codes, its digits and its scale.
DEVICE_FN void quantize_block(f32x4 low, f32x4 high, u32 lane, SHARED(u32) codes, SHARED(u8) digits,
                              SHARED(f32) scale) {
  const BlockCodes block = codes_of_block(low, high);
  store_codes(block, lane, codes, scale);
  if (lane % 2 == 0u) {
    digits[lane / 2] = u8(u32(block.sum) & 63u);
    digits[16 + lane / 2] = u8(u32(block.sum >> 6) & 255u);
  }
}

/// The same for a single row (kernels/row_tile.h): with ROW_SUMS sums.
DEVICE_FN void quantize_row_block(f32x4 low, f32x4 high, u32 lane, SHARED(u32) codes,
                                  SHARED(i32) sums, SHARED(f32) scale) {
  const BlockCodes block = codes_of_block(low, high);
  store_codes(block, lane, codes, scale);
  if (lane % 2 == 0u) {
    sums[lane / 2] = block.sum;
  }
}

// For a single row: four floats for each of the 16 results.
#define ROW_SUM_STEPS 8

/// Puts what a block says into `terms` [16]: its factors times the scale of the codes, each in
/// front of what it multiplies.
DEVICE_FN void store_row_terms(RowProduct product, f32 scale, u32 lane, SHARED(f32) terms) {
  SHARED(f32) to = terms + (lane / 4 * 4 + lane % 2 * 32 + lane % 4 / 2 * 2);
  store2(to, product.factor * scale, f32(product.sum));
}

/// Goes on with one result by n blocks.
DEVICE_FN f32 add_row_terms(SHARED(const f32) terms, u32 n, bool has_offset, f32 sum) {
  f32x4 said[ROW_SUM_STEPS];
  UNROLL for (u32 i = 0; i < ROW_SUM_STEPS; ++i) {
    if (i < n) {
      said[i] = load4(terms + i * ROW_TERMS);
    }
  }
  UNROLL for (u32 i = 0; i < ROW_SUM_STEPS; ++i) {
    if (i < n) {
      sum = fma_f32(said[i].x, said[i].y, sum);
      sum = has_offset ? fma_f32(said[i].z, said[i].w, sum) : sum;
    }
  }
  return sum;
}

/// One result: the blocks' terms from those of its row on, in order.
DEVICE_FN f32 sum_row_terms(SHARED(const f32) terms, u32 n_blocks, bool has_offset) {
  f32 sum = 0.0f;
  u32 block = 0;
  KEEP_LOOP for (; block + ROW_SUM_STEPS <= n_blocks; block += ROW_SUM_STEPS) {
    sum = add_row_terms(terms + block * ROW_TERMS, ROW_SUM_STEPS, has_offset, sum);
  }
  KEEP_LOOP for (; block + 2 <= n_blocks; block += 2) {
    sum = add_row_terms(terms + block * ROW_TERMS, 2, has_offset, sum);
  }
  return block < n_blocks ? add_row_terms(terms + block * ROW_TERMS, 1, has_offset, sum) : sum;
}

}  // namespace hearth::backend::gpu
