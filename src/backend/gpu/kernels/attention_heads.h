#pragma once
/// How a simdgroup makes of a head what attention works with: norm and rotation of queries and
/// keys, and how keys and values are rounded into the cache (graph/kv_panel.h).

#include "backend/gpu/kernels/attention.h"
#include "backend/gpu/kernels/kv_panel.h"
#include "backend/gpu/kernels/lanes.h"
#include "backend/gpu/kernels/rope_pair.h"

namespace hearth::backend::gpu {

#define HEAD_LANE_VALUES (ATTENTION_MAX_HEAD_DIM / 32)  // of a head, at lane + 32 i

/// A lane's share of a head.
struct HeadValues {
  f32 values[HEAD_LANE_VALUES];
};

/// `from` [head_dim]; all are asked for before the first is used.
DEVICE_FN HeadValues load_head(DEVICE(const f32) from, u32 head_dim, u32 lane) {
  HeadValues head;
  UNROLL for (u32 i = 0; i < HEAD_LANE_VALUES; ++i) {
    head.values[i] = 0.0f;
    if (lane + 32 * i < head_dim) {
      head.values[i] = from[lane + 32 * i];
    }
  }
  return head;
}

DEVICE_FN void put_head(HeadValues head, u32 head_dim, u32 lane, SHARED(f32) to) {
  UNROLL for (u32 i = 0; i < HEAD_LANE_VALUES; ++i) {
    if (lane + 32 * i < head_dim) {
      to[lane + 32 * i] = head.values[i];
    }
  }
}

/// What heads of a row are normed and rotated by: a lane's share.
struct HeadForm {
  HeadValues norm;
  f32 cosines[HEAD_LANE_VALUES / 2];  // of pairs lane + 32 i
  f32 sines[HEAD_LANE_VALUES / 2];
};

/// `angles`: of the row.
DEVICE_FN HeadForm load_form(PARAMS(AttentionStoreParams) p, bool is_query, DEVICE(const f32) norm,
                             DEVICE(const f32) angles, u32 lane) {
  HeadForm form;
  const bool has_norm = (is_query ? p.has_q_norm : p.has_k_norm) != 0u;
  form.norm = load_head(norm, has_norm ? p.head_dim : 0u, lane);
  UNROLL for (u32 i = 0; i < HEAD_LANE_VALUES / 2; ++i) {
    const u32 j = lane + 32 * i;
    form.cosines[i] = 0.0f;
    form.sines[i] = 0.0f;
    if (j < p.rope.n_rot / 2) {
      form.cosines[i] = angles[j];
      form.sines[i] = angles[p.rope.n_rot / 2 + j];
    }
  }
  return form;
}

/// Partial sum lane % 16 of the squares of a head, whose values behind its end are zero.
DEVICE_FN f32 head_squares(HeadValues head, u32 lane) {
  f32 partial = 0.0f;
  UNROLL for (u32 i = 0; i < HEAD_LANE_VALUES; ++i) {
    const f32 other = shuffle_xor(head.values[i], N_LANES);
    const f32 low = lane < N_LANES ? head.values[i] : other;
    const f32 high = lane < N_LANES ? other : head.values[i];
    partial = fma_f32(low, low, partial);
    partial = fma_f32(high, high, partial);
  }
  return partial;
}

/// Norm and rotation of a head by a simdgroup: of `head` the lane has its share; `ready` has an
/// element every `stride` floats, once the lanes have met again.
DEVICE_FN void form_head(PARAMS(AttentionStoreParams) p, bool is_query, HeadValues head,
                         THREAD_REF(const HeadForm) form, SHARED(f32) ready, u32 stride, u32 lane) {
  const bool has_norm = (is_query ? p.has_q_norm : p.has_k_norm) != 0u;
  f32 inverse = 1.0f;
  if (has_norm) {
    const f32 square = sum_lanes(head_squares(head, lane));
    inverse = 1.0f / sqrt_f32(square / f32(p.head_dim) + (is_query ? p.q_eps : p.k_eps));
  }
  UNROLL for (u32 i = 0; i < HEAD_LANE_VALUES; ++i) {
    if (lane + 32 * i < p.head_dim) {
      const f32 value = head.values[i];
      ready[(lane + 32 * i) * stride] = has_norm ? value * inverse * form.norm.values[i] : value;
    }
  }
  simdgroup_barrier();
  UNROLL for (u32 i = 0; i < HEAD_LANE_VALUES / 2; ++i) {
    const u32 j = lane + 32 * i;
    if (j < p.rope.n_rot / 2) {
      const u32 first = rope_first(p.rope, j) * stride;
      const u32 second = rope_second(p.rope, j) * stride;
      f32 a = ready[first];
      f32 b = ready[second];
      rotate_pair(form.cosines[i], form.sines[i], a, b);
      ready[first] = a;
      ready[second] = b;
    }
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
  DEVICE_FN void store_##type(KvPlace place, SHARED(const f32) key, SHARED(const f32) value, \
                              DEVICE(Cell) keys, DEVICE(Cell) values, u32 lane) {            \
    const u32 n_word = kv_word_values(kv_type);                                              \
    const u64 start = place.panel * (ATTENTION_BLOCK_KEYS * place.head_dim);                 \
    for (u32 d = lane; d < place.head_dim; d += 32) {                                        \
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

/// 32 values at a time, first those of the key.
#define QUANTIZED_STORE(type, kv_type)                                                        \
  DEVICE_FN void store_##type(KvPlace place, SHARED(const f32) key, SHARED(const f32) value,  \
                              DEVICE(u8) keys, DEVICE(u8) values, u32 lane) {                 \
    const u32 n_word = kv_word_values(kv_type);                                               \
    const u32 n_groups = place.head_dim / 32;                                                 \
    const u64 start = place.panel * kv_panel_bytes(kv_type, place.head_dim);                  \
    for (u32 i = 0; i < 2 * n_groups; ++i) {                                                  \
      const bool is_key = i < n_groups;                                                       \
      const u32 group = is_key ? i : i - n_groups;                                            \
      const u32 d = group * 32 + lane;                                                        \
      const u32 word = d / n_word * ATTENTION_BLOCK_KEYS + place.slot;                        \
      const u32 at = is_key ? word * n_word + d % n_word : place.slot * place.head_dim + d;   \
      const u32 scale =                                                                       \
          is_key ? group * ATTENTION_BLOCK_KEYS + place.slot : place.slot * n_groups + group; \
      const KvCode quantized = quantize_##type(is_key ? key[d] : value[d], lane);             \
      DEVICE(u8) panel = (is_key ? keys : values) + start;                                    \
      store_##type##_code(panel, at, quantized.code, lane);                                   \
      if (lane == 0) {                                                                        \
        const u32 scales = kv_cell_bytes(kv_type, place.head_dim);                            \
        store_halfword(panel + (scales + 2 * scale), quantized.scale_bits);                   \
      }                                                                                       \
    }                                                                                         \
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

}  // namespace hearth::backend::gpu
