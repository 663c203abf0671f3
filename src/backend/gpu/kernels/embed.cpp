// A threadgroup per row, whose simdgroups take turns with passes of 32 pieces, or a thread per
// float: a few kilobytes a token.

#include "backend/gpu/kernels/embed.h"

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/kernels/k_blocks.h"

namespace hearth::backend::gpu {

DEVICE_FN u32 token_of(i32 token, DEVICE(const u32) chosen) {
  return token < 0 ? chosen[u32(-1 - token)] : u32(token);
}

#define EMBED_SIMDGROUPS (EMBED_THREADS / 32)

#define EMBED_KERNEL(name, ...) EMBED_BLOCKS(name, __VA_ARGS__)
#define EMBED_BLOCKS(name, format, block_bytes, block_pieces, piece_weights, unit_pieces,          \
                     activation_block, has_offset)                                                 \
  KERNEL(name, EMBED_THREADS, EmbedParams, BUFFER(0, const u32, counts),                           \
         BUFFER(1, const i32, tokens), BUFFER(2, const u32, chosen), BUFFER(3, const u8, table),   \
         BUFFER(4, f32, y)) {                                                                      \
    SHARED_ARRAY(u32, copies,                                                                      \
                 COPY_WORDS(PASS_BYTES(block_bytes, block_pieces)) * EMBED_SIMDGROUPS);            \
    const u32 row = k_group.x;                                                                     \
    if (row >= counts[0]) {                                                                        \
      return;                                                                                      \
    }                                                                                              \
    const u32 token = token_of(tokens[row], chosen);                                               \
    const u32 pass_bytes = PASS_BYTES(block_bytes, block_pieces);                                  \
    SHARED(u32) copy = copies + k_simdgroup * COPY_WORDS(pass_bytes);                              \
    const u32 n_pieces = p.n / piece_weights;                                                      \
    const u32 row_bytes = n_pieces / block_pieces * block_bytes;                                   \
    for (u32 first = k_simdgroup * PASS_PIECES; first < n_pieces;                                  \
         first += EMBED_SIMDGROUPS * PASS_PIECES) {                                                \
      const u32 at = first / block_pieces * block_bytes;                                           \
      const u32 n = min_u32(row_bytes - at, pass_bytes);                                           \
      const u64 table_row = u64(token);                                                            \
      CopyRange range = copy_range(table_row * row_bytes, row_bytes, at, n);                       \
      if (HAS_TILES(block_bytes) && p.is_tiled != 0u) {                                            \
        range.begin = 0;                                                                           \
        gather_blocks(block_bytes, table, table_row, row_bytes / block_bytes, at / block_bytes, n, \
                      k_lane, copy);                                                               \
      } else {                                                                                     \
        u32x4 loaded[COPY_LOADS(pass_bytes)];                                                      \
        load_copy(table, range, k_lane, loaded, COPY_LOADS(pass_bytes));                           \
        store_copy(copy, range.end, k_lane, loaded, COPY_LOADS(pass_bytes));                       \
      }                                                                                            \
      simdgroup_barrier();                                                                         \
      if (first + k_lane < n_pieces) {                                                             \
        Piece piece;                                                                               \
        format##_piece(copy, range.begin + k_lane / block_pieces * block_bytes,                    \
                       k_lane % block_pieces, piece);                                              \
        DEVICE(f32) to = y + u64(row) * p.n + (first + k_lane) * piece_weights;                    \
        UNROLL for (u32 i = 0; i < piece_weights; ++i) {                                           \
          to[i] = piece_weight(piece, i, has_offset) * p.scale;                                    \
        }                                                                                          \
      }                                                                                            \
      simdgroup_barrier();                                                                         \
    }                                                                                              \
  }

EMBED_KERNEL(embed_q4_0, Q4_0_FORMAT)
EMBED_KERNEL(embed_q4_1, Q4_1_FORMAT)
EMBED_KERNEL(embed_q5_0, Q5_0_FORMAT)
EMBED_KERNEL(embed_q5_1, Q5_1_FORMAT)
EMBED_KERNEL(embed_q8_0, Q8_0_FORMAT)
EMBED_KERNEL(embed_iq4_nl, IQ4_NL_FORMAT)
EMBED_KERNEL(embed_mxfp4, MXFP4_FORMAT)
EMBED_KERNEL(embed_nvfp4, NVFP4_FORMAT)
EMBED_KERNEL(embed_q2_k, Q2_K_FORMAT)
EMBED_KERNEL(embed_q3_k, Q3_K_FORMAT)
EMBED_KERNEL(embed_q4_k, Q4_K_FORMAT)
EMBED_KERNEL(embed_q5_k, Q5_K_FORMAT)
EMBED_KERNEL(embed_q6_k, Q6_K_FORMAT)
EMBED_KERNEL(embed_iq4_xs, IQ4_XS_FORMAT)

/// For a table that is f32 already.
DEVICE_FN f32 to_f32(f32 x) {
  return x;
}

#define FLOAT_EMBED_KERNEL(name, element)                                          \
  KERNEL(name, EMBED_THREADS, EmbedParams, BUFFER(0, const u32, counts),           \
         BUFFER(1, const i32, tokens), BUFFER(2, const u32, chosen),               \
         BUFFER(3, const element, table), BUFFER(4, f32, y)) {                     \
    const u32 row = k_group.x;                                                     \
    if (row >= counts[0]) {                                                        \
      return;                                                                      \
    }                                                                              \
    DEVICE(const element) from = table + u64(token_of(tokens[row], chosen)) * p.n; \
    for (u32 i = k_thread.x; i < p.n; i += EMBED_THREADS) {                        \
      y[u64(row) * p.n + i] = to_f32(from[i]) * p.scale;                           \
    }                                                                              \
  }

FLOAT_EMBED_KERNEL(embed_f32, f32)
FLOAT_EMBED_KERNEL(embed_f16, f16)
FLOAT_EMBED_KERNEL(embed_bf16, bf16)

}  // namespace hearth::backend::gpu
