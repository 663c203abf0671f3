// attention_part_f16: a threadgroup per part of 64 keys, query head and row. Scores: a key per
// simdgroup, lanes along head_dim. Weights: two keys a lane, the same in every simdgroup. Values: a
// thread per dimension, keys in ascending order. Bound by memory: keys and values are read once per
// query head, from cache for all but the first of a group.

#include "backend/gpu/kernels/attention.h"

#include "backend/gpu/dialect/dialect.h"

namespace hearth::backend::gpu {

/// Where the keys or values of a position begin, in elements.
DEVICE_FN u64 cache_offset(DEVICE(const i32) table, u32 position, u32 n_kv_heads, u32 kv_head,
                           u32 head_dim) {
  const u32 block = u32(table[position / ATTENTION_BLOCK_KEYS]);
  const u64 panel = u64(block) * n_kv_heads + kv_head;
  return (panel * ATTENTION_BLOCK_KEYS + position % ATTENTION_BLOCK_KEYS) * head_dim;
}

KERNEL(kv_store_f16, 256, KvStoreParams, BUFFER(0, const f32, k), BUFFER(1, const f32, v),
       BUFFER(2, const i32, positions), BUFFER(3, const i32, sequences),
       BUFFER(4, const i32, tables), BUFFER(5, f16, keys), BUFFER(6, f16, values)) {
  const u32 row = k_group.x;
  const u32 features = p.n_kv_heads * p.head_dim;
  DEVICE(const i32) table = tables + u64(u32(sequences[row])) * p.table_stride;
  for (u32 i = k_thread.x; i < features; i += k_group_size.x) {
    const u64 to =
        cache_offset(table, u32(positions[row]), p.n_kv_heads, i / p.head_dim, p.head_dim) +
        i % p.head_dim;
    keys[to] = to_f16(k[u64(row) * features + i]);
    values[to] = to_f16(v[u64(row) * features + i]);
  }
}

/// The first key that a query at `position` sees.
DEVICE_FN u32 first_key(u32 position, u32 window) {
  return window == 0u || position < window ? 0u : position - window + 1u;
}

KERNEL(attention_part_f16, 128, AttentionPartParams, BUFFER(0, const f32, q),
       BUFFER(1, const i32, positions), BUFFER(2, const i32, sequences),
       BUFFER(3, const i32, tables), BUFFER(4, const f16, keys), BUFFER(5, const f16, values),
       BUFFER(6, f32, partial)) {
  SHARED_ARRAY(f32, scores, ATTENTION_PART_KEYS);
  SHARED_ARRAY(f32, weights, ATTENTION_PART_KEYS);
  const u32 part = k_group.x;
  const u32 head = k_group.y;
  const u32 row = k_group.z;
  const u32 kv_head = head / (p.n_heads / p.n_kv_heads);
  const u32 position = u32(positions[row]);
  DEVICE(const i32) table = tables + u64(u32(sequences[row])) * p.table_stride;
  // The keys of this part that the query sees: [begin, end), none if begin >= end.
  const u32 part_begin = part * ATTENTION_PART_KEYS;
  const u32 begin = max_u32(part_begin, first_key(position, p.window));
  const u32 end = min_u32(part_begin + ATTENTION_PART_KEYS, position + 1u);

  DEVICE(const f32) q_head = q + (u64(row) * p.n_heads + head) * p.head_dim;
  for (u32 key = begin + k_simdgroup; key < end; key += 4) {
    DEVICE(const f16) k_head = keys + cache_offset(table, key, p.n_kv_heads, kv_head, p.head_dim);
    f32 dot = 0.0f;
    for (u32 d = k_lane; d < p.head_dim; d += 32) {
      dot = fma_f32(q_head[d], to_f32(k_head[d]), dot);
    }
    dot = simd_sum_f32(dot);
    if (k_lane == 0) {
      scores[key - part_begin] = dot * p.scale;
    }
  }
  group_barrier();

  const u32 key0 = part_begin + k_lane;
  const u32 key1 = key0 + 32;
  const bool sees0 = key0 >= begin && key0 < end;
  const bool sees1 = key1 >= begin && key1 < end;
  const f32 score0 = sees0 ? scores[k_lane] : LOWEST_F32;
  const f32 score1 = sees1 ? scores[k_lane + 32] : LOWEST_F32;
  const f32 maximum = simd_max_f32(max_f32(score0, score1));
  const f32 weight0 = sees0 ? exp_f32(score0 - maximum) : 0.0f;
  const f32 weight1 = sees1 ? exp_f32(score1 - maximum) : 0.0f;
  const f32 sum = simd_sum_f32(weight0 + weight1);
  if (k_simdgroup == 0) {
    weights[k_lane] = weight0;
    weights[k_lane + 32] = weight1;
  }
  group_barrier();

  DEVICE(f32)
  out = partial + ((u64(row) * p.n_heads + head) * p.n_parts + part) * (p.head_dim + 2u);
  if (k_thread.x == 0) {
    out[0] = maximum;
    out[1] = sum;
  }
  for (u32 d = k_thread.x; d < p.head_dim; d += k_group_size.x) {
    f32 value = 0.0f;
    for (u32 key = begin; key < end; ++key) {
      const u64 at = cache_offset(table, key, p.n_kv_heads, kv_head, p.head_dim) + d;
      value = fma_f32(weights[key - part_begin], to_f32(values[at]), value);
    }
    out[2u + d] = value;
  }
}

KERNEL(attention_combine_f32, 128, AttentionPartParams, BUFFER(0, const f32, partial),
       BUFFER(1, const i32, positions), BUFFER(2, f32, y)) {
  const u32 head = k_group.x;
  const u32 row = k_group.y;
  const u32 position = u32(positions[row]);
  const u32 stride = p.head_dim + 2u;
  DEVICE(const f32) parts = partial + (u64(row) * p.n_heads + head) * p.n_parts * stride;
  for (u32 d = k_thread.x; d < p.head_dim; d += k_group_size.x) {
    f32 maximum = LOWEST_F32;
    f32 sum = 0.0f;
    f32 value = 0.0f;
    for (u32 part = first_key(position, p.window) / ATTENTION_PART_KEYS;
         part <= position / ATTENTION_PART_KEYS; ++part) {
      DEVICE(const f32) from = parts + u64(part) * stride;
      const f32 larger = max_f32(maximum, from[0]);
      const f32 old_factor = exp_f32(maximum - larger);
      const f32 new_factor = exp_f32(from[0] - larger);
      sum = fma_f32(sum, old_factor, from[1] * new_factor);
      value = fma_f32(value, old_factor, from[2u + d] * new_factor);
      maximum = larger;
    }
    y[(u64(row) * p.n_heads + head) * p.head_dim + d] = value / sum;
  }
}

}  // namespace hearth::backend::gpu
