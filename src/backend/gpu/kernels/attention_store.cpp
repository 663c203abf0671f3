// A simdgroup per head of a row: first the query heads, then the key/value heads. A few kilobytes a
// row: bound by latency.

#include "backend/gpu/kernels/attention.h"
#include "backend/gpu/kernels/attention_heads.h"

namespace hearth::backend::gpu {

#define STORE_SIMDGROUPS (ATTENTION_STORE_THREADS / 32)

#define ATTENTION_STORE_KERNEL(name, Cell, store)                                                 \
  EARLY_KERNEL(name, ATTENTION_STORE_THREADS, AttentionStoreParams, BUFFER(0, const u32, counts), \
               BUFFER(1, const f32, q), BUFFER(2, const f32, k), BUFFER(3, const f32, v),         \
               BUFFER(4, const f32, q_norm), BUFFER(5, const f32, k_norm),                        \
               BUFFER(6, const f32, angles), BUFFER(7, const i32, positions),                     \
               BUFFER(8, const i32, sequences), BUFFER(9, const i32, tables),                     \
               BUFFER(10, f32, q_ready), BUFFER(11, Cell, keys), BUFFER(12, Cell, values)) {      \
    SHARED_ARRAY(f32, readies, STORE_SIMDGROUPS* ATTENTION_MAX_HEAD_DIM);                         \
    SHARED_ARRAY(f32, new_values, STORE_SIMDGROUPS* ATTENTION_MAX_HEAD_DIM);                      \
    const u32 row = k_group.y;                                                                    \
    const u32 head = k_group.x * STORE_SIMDGROUPS + k_simdgroup;                                  \
    const bool is_query = head < p.n_heads;                                                       \
    if (row >= counts[0] || head >= p.n_heads + p.n_kv_heads) {                                   \
      wait_for_kernel_before();                                                                   \
      return;                                                                                     \
    }                                                                                             \
    SHARED(f32) ready = readies + k_simdgroup * ATTENTION_MAX_HEAD_DIM;                           \
    SHARED(f32) value = new_values + k_simdgroup * ATTENTION_MAX_HEAD_DIM;                        \
    const HeadForm form = load_form(p, is_query, is_query ? q_norm : k_norm,                      \
                                    angles + u64(row) * p.rope.n_rot, k_lane);                    \
    wait_for_kernel_before();                                                                     \
    const u32 kv_head = is_query ? 0u : head - p.n_heads;                                         \
    const u64 q_start = u64(row) * p.q_features + head * p.q_period + p.q_start;                  \
    const u64 kv_start = (u64(row) * p.n_kv_heads + kv_head) * p.head_dim;                        \
    const HeadValues values_of_head =                                                             \
        load_head(is_query ? q + q_start : k + kv_start, p.head_dim, k_lane);                     \
    const HeadValues new_value = load_head(v + kv_start, is_query ? 0u : p.head_dim, k_lane);     \
    form_head(p, is_query, values_of_head, form, ready, 1, k_lane);                               \
    put_head(new_value, p.head_dim, k_lane, value);                                               \
    simdgroup_barrier();                                                                          \
    if (is_query) {                                                                               \
      const u64 to = (u64(row) * p.n_heads + head) * p.head_dim;                                  \
      for (u32 i = k_lane; i < p.head_dim; i += 32) {                                             \
        q_ready[to + i] = ready[i];                                                               \
      }                                                                                           \
    } else {                                                                                      \
      const KvPlace place = kv_place(p, tables + u64(u32(sequences[row])) * p.table_stride,       \
                                     u32(positions[row]), kv_head);                               \
      store(place, ready, value, keys, values, k_lane);                                           \
    }                                                                                             \
  }

ATTENTION_STORE_KERNEL(attention_store_f32, f32, store_f32)
ATTENTION_STORE_KERNEL(attention_store_f16, f16, store_f16)
ATTENTION_STORE_KERNEL(attention_store_bf16, bf16, store_bf16)
ATTENTION_STORE_KERNEL(attention_store_q8_0, u8, store_q8_0)
ATTENTION_STORE_KERNEL(attention_store_q4_0, u8, store_q4_0)

}  // namespace hearth::backend::gpu
