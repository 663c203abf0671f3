// A threadgroup per row, a thread per weight: a few kilobytes a token.

#include "backend/gpu/kernels/embed.h"

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/kernels/blocks.h"

namespace hearth::backend::gpu {

#define EMBED_KERNEL(name, weight, block_weights, block_bytes)                             \
  KERNEL(name, 256, EmbedParams, BUFFER(0, const i32, tokens), BUFFER(1, const u8, table), \
         BUFFER(2, f32, y)) {                                                              \
    const u64 row_bytes = u64(p.n / block_weights) * block_bytes;                          \
    DEVICE(const u8) row = table + u64(u32(tokens[k_group.x])) * row_bytes;                \
    for (u32 i = k_thread.x; i < p.n; i += k_group_size.x) {                               \
      y[u64(k_group.x) * p.n + i] =                                                        \
          weight(row + u64(i / block_weights) * block_bytes, i % block_weights) * p.scale; \
    }                                                                                      \
  }

EMBED_KERNEL(embed_q4_k, q4_k_weight, 256, Q4_K_BYTES)
EMBED_KERNEL(embed_q6_k, q6_k_weight, 256, Q6_K_BYTES)
EMBED_KERNEL(embed_q8_0, q8_0_weight, 32, Q8_0_BYTES)

KERNEL(embed_f16, 256, EmbedParams, BUFFER(0, const i32, tokens), BUFFER(1, const f16, table),
       BUFFER(2, f32, y)) {
  DEVICE(const f16) row = table + u64(u32(tokens[k_group.x])) * p.n;
  for (u32 i = k_thread.x; i < p.n; i += k_group_size.x) {
    y[u64(k_group.x) * p.n + i] = to_f32(row[i]) * p.scale;
  }
}

}  // namespace hearth::backend::gpu
