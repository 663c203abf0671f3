#pragma once
/// Tiles of a row by one simdgroup (kernels/row_tile.h, kernels/small_tile.h), which goes through
/// strips that lie one behind the other and keeps the chain of each of 16 results in a register:
/// lanes 4 g + q with q < 2 have that of row g + 8 q. Two tiles are always on their way.

#include "backend/gpu/kernels/small_tile.h"

namespace hearth::backend::gpu {

/// A tile, and of types with blocks of 32 weights the scales of the lane's row.
struct RowChainTile {
  StripTile tile;
  u32x4 scales;
};

DEVICE_FN void load_chain_tile(u32 type, DEVICE(const u8) from, u32 lane,
                               THREAD_REF(RowChainTile) to) {
  if (!STRIP_IS_SMALL(type)) {
    tile_load(type, from, lane, to.tile);
    return;
  }
  UNROLL for (u32 i = 0; i < 8; ++i) {
    if (i < small_pieces(type)) {
      load_small_piece(from, small_head(type), i, lane, to.tile);
    }
  }
  to.scales = load_own_scales(type, from, lane);
}

/// Goes on with a chain by what a tile says: offsets come from the lanes that have them.
DEVICE_FN f32 add_row_product(RowProduct product, f32 scale, bool has_offset, f32 before) {
  const f32 factor = product.factor * scale;
  const f32 value = f32(product.sum);
  const f32 sum = fma_f32(factor, value, before);
  if (!has_offset) {
    return sum;
  }
  return fma_f32(shuffle_xor(factor, 2), shuffle_xor(value, 2), sum);
}

/// format_own_link: a tile goes into the chain, and makes room for the one at `next`; `codes`,
/// `sums` and `scales` are those of its block.
#define K_OWN_LINK(format, has_offset)                                                           \
  DEVICE_FN f32 format##_own_link(u32, THREAD_REF(RowChainTile) own, bool has_next,              \
                                  DEVICE(const u8) next, SHARED(const u32) codes,                \
                                  SHARED(const i32) sums, SHARED(const f32) scales, u32 lane,    \
                                  f32 before) {                                                  \
    RowProduct product;                                                                          \
    format##_row_multiply(own.tile, has_next, next, format##_row_codes(codes, sums, lane), lane, \
                          product);                                                              \
    return add_row_product(product, scales[0], has_offset, before);                              \
  }
#define SMALL_OWN_LINK(format)                                                                    \
  DEVICE_FN f32 format##_own_link(u32 type, THREAD_REF(RowChainTile) own, bool has_next,          \
                                  DEVICE(const u8) next, SHARED(const u32) codes,                 \
                                  SHARED(const i32), SHARED(const f32) scales, u32 lane,          \
                                  f32 before) {                                                   \
    return format##_own_multiply(type, own.tile, own.scales, has_next, next, codes, scales, lane, \
                                 before);                                                         \
  }

/// format_own_chains: n_chains strips of n_blocks tiles each from `from` on, of which the first two
/// tiles are in `own`; results [n_chains][16].
#define OWN_CHAINS(format)                                                                         \
  DEVICE_FN void format##_own_chains(u32 type, DEVICE(const u8) from, u32 n_chains, u32 n_blocks,  \
                                     SHARED(const u32) codes, SHARED(const i32) sums,              \
                                     SHARED(const f32) scales, u32 lane, THREAD(RowChainTile) own, \
                                     SHARED(f32) results) {                                        \
    const u32 tile_bytes = strip_tile_bytes(type);                                                 \
    const u32 n_tiles = n_chains * n_blocks;                                                       \
    u32 block = 0;                                                                                 \
    u32 result = lane / 4 + 8 * (lane % 2);                                                        \
    f32 sum = 0.0f;                                                                                \
    KEEP_LOOP for (u32 first = 0; first < n_tiles; first += 2) {                                   \
      UNROLL for (u32 i = 0; i < 2; ++i) {                                                         \
        const u32 next = first + i + 2;                                                            \
        if (first + i < n_tiles) {                                                                 \
          sum = format##_own_link(type, own[i], next < n_tiles, from + next * tile_bytes,          \
                                  codes + block * STRIP_BLOCK_WORDS, sums + block * ROW_SUMS,      \
                                  scales + block * SMALL_RUNS, lane, sum);                         \
          ++block;                                                                                 \
          if (block == n_blocks) {                                                                 \
            if (lane % 4 < 2u) {                                                                   \
              results[result] = sum;                                                               \
            }                                                                                      \
            result += STRIP_ROWS;                                                                  \
            sum = 0.0f;                                                                            \
            block = 0;                                                                             \
          }                                                                                        \
        }                                                                                          \
      }                                                                                            \
    }                                                                                              \
  }

K_OWN_LINK(q4_k, true)
K_OWN_LINK(q5_k, true)
K_OWN_LINK(q6_k, false)
SMALL_OWN_LINK(q8_0)
SMALL_OWN_LINK(four_bits)

OWN_CHAINS(q4_k)
OWN_CHAINS(q5_k)
OWN_CHAINS(q6_k)
OWN_CHAINS(q8_0)
OWN_CHAINS(four_bits)

/// By StripParams::type; codes, their sums and scales as quantize_for() leaves them.
DEVICE_FN void multiply_own_chains(u32 type, DEVICE(const u8) from, u32 n_chains, u32 n_blocks,
                                   SHARED(const u32) codes, SHARED(const i32) sums,
                                   SHARED(const f32) scales, u32 lane, THREAD(RowChainTile) own,
                                   SHARED(f32) results) {
  if (type == STRIP_Q4_K) {
    q4_k_own_chains(type, from, n_chains, n_blocks, codes, sums, scales, lane, own, results);
  } else if (type == STRIP_Q5_K) {
    q5_k_own_chains(type, from, n_chains, n_blocks, codes, sums, scales, lane, own, results);
  } else if (type == STRIP_Q6_K) {
    q6_k_own_chains(type, from, n_chains, n_blocks, codes, sums, scales, lane, own, results);
  } else if (type == STRIP_Q8_0) {
    q8_0_own_chains(type, from, n_chains, n_blocks, codes, sums, scales, lane, own, results);
  } else {
    four_bits_own_chains(type, from, n_chains, n_blocks, codes, sums, scales, lane, own, results);
  }
}

}  // namespace hearth::backend::gpu
