// A threadgroup per head of a row: first the query heads, then the key/value heads. The head passes
// through shared memory twice, because norm and rotation need others than a thread's own elements.
// Every simdgroup works out the norm by itself. A few kilobytes a row: bound by latency.

#include "backend/gpu/kernels/attention.h"
#include "backend/gpu/kernels/kv_panel.h"
#include "backend/gpu/kernels/lanes.h"
#include "backend/gpu/kernels/rope_pair.h"

namespace hearth::backend::gpu {

/// Norm and rotation of head k_group.x of a row: raw [head_dim] in shared memory becomes `ready`,
/// once the threadgroup has met again.
DEVICE_FN void make_ready(PARAMS(AttentionStoreParams) p, bool is_query, SHARED(const f32) raw,
                          DEVICE(const f32) norm, DEVICE(const f32) angles, SHARED(f32) ready,
                          u32 thread_id, u32 n_threads) {
  const bool has_norm = (is_query ? p.has_q_norm : p.has_k_norm) != 0u;
  f32 inverse = 1.0f;
  if (has_norm) {
    const f32 square = sum_lanes(add_squares(raw, p.head_dim, thread_id % 32, 0.0f));
    inverse = 1.0f / sqrt_f32(square / f32(p.head_dim) + (is_query ? p.q_eps : p.k_eps));
  }
  for (u32 j = thread_id; j < p.rope.n_rot / 2; j += n_threads) {
    const u32 first = rope_first(p.rope, j);
    const u32 second = rope_second(p.rope, j);
    f32 a = has_norm ? raw[first] * inverse * norm[first] : raw[first];
    f32 b = has_norm ? raw[second] * inverse * norm[second] : raw[second];
    rotate_pair(p.rope, angles, j, a, b);
    ready[first] = a;
    ready[second] = b;
  }
  for (u32 i = p.rope.n_rot + thread_id; i < p.head_dim; i += n_threads) {
    ready[i] = has_norm ? raw[i] * inverse * norm[i] : raw[i];
  }
}

/// Where the key and value of a position go: panel of block and head, position in the panel.
struct KvPlace {
  u64 panel;
  u32 slot;
  u32 head_dim;
};

/// graph::to_bfloat16: to nearest, ties to even; a NaN stays one.
DEVICE_FN bf16 to_bf16(f32 x) {
  const u32 bits = bits_of_f32(x);
  const u32 rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  bf16 result;
  result.bits = u16(is_nan_f32(x) ? (bits >> 16) | 0x40u : rounded);
  return result;
}
DEVICE_FN f32 same_f32(f32 x) {
  return x;
}

#define FLOAT_STORE(type, Cell, kv_type, round)                                              \
  DEVICE_FN void store_##type(KvPlace place, SHARED(const f32) key, DEVICE(const f32) value, \
                              DEVICE(Cell) keys, DEVICE(Cell) values, u32 thread_id,         \
                              u32 n_threads) {                                               \
    const u32 n_word = kv_word_values(kv_type);                                              \
    const u64 start = place.panel * (ATTENTION_BLOCK_KEYS * place.head_dim);                 \
    for (u32 d = thread_id; d < place.head_dim; d += n_threads) {                            \
      const u32 word = d / n_word * ATTENTION_BLOCK_KEYS + place.slot;                       \
      keys[start + word * n_word + d % n_word] = round(key[d]);                              \
      values[start + place.slot * place.head_dim + d] = round(value[d]);                     \
    }                                                                                        \
  }

FLOAT_STORE(f32, f32, KV_F32, same_f32)
FLOAT_STORE(f16, f16, KV_F16, to_f16)
FLOAT_STORE(bf16, bf16, KV_BF16, to_bf16)

/// One lane's share of 32 values that have a scale in common: the code of its own value.
struct KvCode {
  u32 scale_bits;  // f16
  i32 code;
};

#define QUIET_NAN_BITS 0x7fc00000u
#define SMALLEST_ACTIVATION 7.52316385e-37f  // 2^-120, as of quant/activation.h
#define ROUNDING_SHIFT 12582912.0f           // 1.5 * 2^23

/// quant::quantize_block<32>
DEVICE_FN KvCode quantize_q8_0(f32 x, u32 /*lane*/) {
  u32 magnitude_bits = bits_of_f32(x) & 0x7fffffffu;
  for (u32 distance = 16; distance > 0; distance /= 2) {
    magnitude_bits = max_u32(magnitude_bits, shuffle_xor(magnitude_bits, distance));
  }
  const f32 magnitude = f32_of_bits(magnitude_bits);
  const bool is_finite = magnitude_bits < 0x7f800000u;
  KvCode result;
  if (!is_finite || magnitude < SMALLEST_ACTIVATION) {
    result.scale_bits = bits_of_f16(to_f16(is_finite ? 0.0f : f32_of_bits(QUIET_NAN_BITS)));
    result.code = 0;
    return result;
  }
  result.scale_bits = bits_of_f16(to_f16(magnitude / 127.0f));
  result.code = i32((x * (127.0f / magnitude) + ROUNDING_SHIFT) - ROUNDING_SHIFT);
  return result;
}

/// graph::quantize_group for Q4_0: the first value of largest magnitude becomes -8.
DEVICE_FN KvCode quantize_q4_0(f32 x, u32 lane) {
  u32 magnitude_bits = bits_of_f32(x) & 0x7fffffffu;
  u32 first = lane;
  for (u32 distance = 16; distance > 0; distance /= 2) {
    const u32 other_bits = shuffle_xor(magnitude_bits, distance);
    const u32 other = shuffle_xor(first, distance);
    const bool is_before =
        other_bits > magnitude_bits || (other_bits == magnitude_bits && other < first);
    magnitude_bits = is_before ? other_bits : magnitude_bits;
    first = is_before ? other : first;
  }
  const f32 extreme = shuffle(x, first);
  const bool is_finite = magnitude_bits < 0x7f800000u;
  KvCode result;
  if (!is_finite || f32_of_bits(magnitude_bits) < SMALLEST_ACTIVATION) {
    result.scale_bits = bits_of_f16(to_f16(is_finite ? 0.0f : f32_of_bits(QUIET_NAN_BITS)));
    result.code = 0;
    return result;
  }
  result.scale_bits = bits_of_f16(to_f16(extreme / -8.0f));
  const f32 rounded = (x * (-8.0f / extreme) + ROUNDING_SHIFT) - ROUNDING_SHIFT;
  result.code = i32(rounded < 7.0f ? rounded : 7.0f);
  return result;
}

DEVICE_FN void store_halfword(DEVICE(u8) to, u32 bits) {
  to[0] = u8(bits & 255u);
  to[1] = u8(bits >> 8);
}

/// Byte `index` of the codes of q8_0 or q4_0 in a panel, by the lane whose code it is, or the first
/// of two: lanes 2 i and 2 i + 1 share a byte of q4_0.
DEVICE_FN void store_q8_0_code(DEVICE(u8) codes, u32 index, i32 code, u32 /*lane*/) {
  codes[index] = u8(u32(code) & 255u);
}
DEVICE_FN void store_q4_0_code(DEVICE(u8) codes, u32 index, i32 code, u32 lane) {
  const u32 own = u32(code + 8);
  const u32 next = shuffle_xor(own, 1);
  if (lane % 2 == 0) {
    codes[index / 2] = u8(own | (next << 4));
  }
}

/// A simdgroup takes 32 values at a time, first those of the key.
#define QUANTIZED_STORE(type, kv_type)                                                            \
  DEVICE_FN void store_##type(KvPlace place, SHARED(const f32) key, DEVICE(const f32) value,      \
                              DEVICE(u8) keys, DEVICE(u8) values, u32 thread_id, u32 n_threads) { \
    const u32 n_word = kv_word_values(kv_type);                                                   \
    const u32 n_groups = place.head_dim / 32;                                                     \
    const u32 lane = thread_id % 32;                                                              \
    const u64 start = place.panel * kv_panel_bytes(kv_type, place.head_dim);                      \
    for (u32 i = thread_id / 32; i < 2 * n_groups; i += n_threads / 32) {                         \
      const bool is_key = i < n_groups;                                                           \
      const u32 group = is_key ? i : i - n_groups;                                                \
      const u32 d = group * 32 + lane;                                                            \
      const u32 word = d / n_word * ATTENTION_BLOCK_KEYS + place.slot;                            \
      const u32 at = is_key ? word * n_word + d % n_word : place.slot * place.head_dim + d;       \
      const u32 scale =                                                                           \
          is_key ? group * ATTENTION_BLOCK_KEYS + place.slot : place.slot * n_groups + group;     \
      const KvCode quantized = quantize_##type(is_key ? key[d] : value[d], lane);                 \
      DEVICE(u8) panel = (is_key ? keys : values) + start;                                        \
      store_##type##_code(panel, at, quantized.code, lane);                                       \
      if (lane == 0) {                                                                            \
        const u32 scales = kv_cell_bytes(kv_type, place.head_dim);                                \
        store_halfword(panel + (scales + 2 * scale), quantized.scale_bits);                       \
      }                                                                                           \
    }                                                                                             \
  }

QUANTIZED_STORE(q8_0, KV_Q8_0)
QUANTIZED_STORE(q4_0, KV_Q4_0)

DEVICE_FN KvPlace kv_place(PARAMS(AttentionStoreParams) p, DEVICE(const i32) table, u32 position,
                           u32 kv_head) {
  const u32 block = u32(table[position / ATTENTION_BLOCK_KEYS]);
  KvPlace place;
  place.panel = u64(block) * p.n_kv_heads + kv_head;
  place.slot = position % ATTENTION_BLOCK_KEYS;
  place.head_dim = p.head_dim;
  return place;
}

#define ATTENTION_STORE_KERNEL(name, Cell, store)                                                \
  KERNEL(name, 128, AttentionStoreParams, BUFFER(0, const u32, counts), BUFFER(1, const f32, q), \
         BUFFER(2, const f32, k), BUFFER(3, const f32, v), BUFFER(4, const f32, q_norm),         \
         BUFFER(5, const f32, k_norm), BUFFER(6, const f32, angles),                             \
         BUFFER(7, const i32, positions), BUFFER(8, const i32, sequences),                       \
         BUFFER(9, const i32, tables), BUFFER(10, f32, q_ready), BUFFER(11, Cell, keys),         \
         BUFFER(12, Cell, values)) {                                                             \
    SHARED_ARRAY(f32, raw, ATTENTION_MAX_HEAD_DIM);                                              \
    SHARED_ARRAY(f32, ready, ATTENTION_MAX_HEAD_DIM);                                            \
    const u32 row = k_group.y;                                                                   \
    if (row >= counts[0]) {                                                                      \
      return;                                                                                    \
    }                                                                                            \
    const bool is_query = k_group.x < p.n_heads;                                                 \
    const u32 kv_head = is_query ? 0u : k_group.x - p.n_heads;                                   \
    const u64 q_start = u64(row) * p.q_features + k_group.x * p.q_period + p.q_start;            \
    const u64 kv_start = (u64(row) * p.n_kv_heads + kv_head) * p.head_dim;                       \
    const u64 out_start = (u64(row) * p.n_heads + k_group.x) * p.head_dim;                       \
    for (u32 i = k_thread.x; i < p.head_dim; i += k_group_size.x) {                              \
      raw[i] = is_query ? q[q_start + i] : k[kv_start + i];                                      \
    }                                                                                            \
    group_barrier();                                                                             \
    make_ready(p, is_query, raw, is_query ? q_norm : k_norm, angles + u64(row) * p.rope.n_rot,   \
               ready, k_thread.x, k_group_size.x);                                               \
    group_barrier();                                                                             \
    if (is_query) {                                                                              \
      for (u32 i = k_thread.x; i < p.head_dim; i += k_group_size.x) {                            \
        q_ready[out_start + i] = ready[i];                                                       \
      }                                                                                          \
    } else {                                                                                     \
      const KvPlace place = kv_place(p, tables + u64(u32(sequences[row])) * p.table_stride,      \
                                     u32(positions[row]), kv_head);                              \
      store(place, ready, v + kv_start, keys, values, k_thread.x, k_group_size.x);               \
    }                                                                                            \
  }

ATTENTION_STORE_KERNEL(attention_store_f32, f32, store_f32)
ATTENTION_STORE_KERNEL(attention_store_f16, f16, store_f16)
ATTENTION_STORE_KERNEL(attention_store_bf16, bf16, store_bf16)
ATTENTION_STORE_KERNEL(attention_store_q8_0, u8, store_q8_0)
ATTENTION_STORE_KERNEL(attention_store_q4_0, u8, store_q4_0)

}  // namespace hearth::backend::gpu
