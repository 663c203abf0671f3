#pragma once
/// How keys and values lie in a panel of the cache, the 16 positions of one head in one block
/// (graph/kv_panel.h has the roundings; the places are our own).
///
/// Keys: words of 16 bytes with consecutive values of one key, [words of a key][16 positions], so
/// that threads with neighbouring positions read whole lines. Values: [16 positions][head_dim].
/// Quantized types: codes so, then the scales: keys [head_dim / 32][16 positions], values
/// [16 positions][head_dim / 32], f16. Codes of q4_0 lie two in a byte, the lower one first.

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/kernels/attention.h"

namespace hearth::backend::gpu {

#define KV_F32 0u
#define KV_F16 1u
#define KV_BF16 2u
#define KV_Q8_0 3u
#define KV_Q4_0 4u

// `type` is one of these, known where the function is used.

/// Values in a word of 16 bytes.
DEVICE_FN u32 kv_word_values(u32 type) {
  return type == KV_F32 ? 4u : type == KV_Q8_0 ? 16u : type == KV_Q4_0 ? 32u : 8u;
}

/// Bytes of the panel without scales, which begin behind them.
DEVICE_FN u32 kv_cell_bytes(u32 type, u32 head_dim) {
  return head_dim / kv_word_values(type) * 16 * ATTENTION_BLOCK_KEYS;
}

DEVICE_FN u32 kv_panel_bytes(u32 type, u32 head_dim) {
  const u32 scale_bytes = head_dim / 32 * 2 * ATTENTION_BLOCK_KEYS;
  return kv_cell_bytes(type, head_dim) + (type >= KV_Q8_0 ? scale_bytes : 0u);
}

DEVICE_FN f32 kv_scale(DEVICE(const u8) scales, u32 index) {
  return to_f32(f16_of_bits(halfwords(scales)[index]));
}

DEVICE_FN u32 word_part(u32x4 word, u32 i) {
  return i == 0u ? word.x : i == 1u ? word.y : i == 2u ? word.z : word.w;
}

/// Value i of four bytes of a key, which for quantized types has `scale`.
DEVICE_FN f32 kv_part_value(u32 type, u32 part, u32 i, f32 scale) {
  if (type == KV_F32) {
    return f32_of_bits(part);
  }
  if (type == KV_F16) {
    return to_f32(f16_of_bits((part >> (16u * i)) & 0xffffu));
  }
  if (type == KV_BF16) {
    return f32_of_bits(i == 0u ? part << 16 : part & 0xffff0000u);
  }
  if (type == KV_Q8_0) {
    return scale * f32(i32(part << (24u - 8u * i)) >> 24);
  }
  return scale * f32(i32((part >> (4u * i)) & 15u) - 8);
}

/// Element d of the value at a position of the panel.
DEVICE_FN f32 kv_value(u32 type, DEVICE(const u8) panel, u32 head_dim, u32 slot, u32 d) {
  const u32 i = slot * head_dim + d;
  if (type == KV_F32) {
    return f32_of_bits(words(panel)[i]);
  }
  if (type == KV_F16) {
    return to_f32(f16_of_bits(halfwords(panel)[i]));
  }
  if (type == KV_BF16) {
    return f32_of_bits(u32(halfwords(panel)[i]) << 16);
  }
  const f32 scale = kv_scale(panel + kv_cell_bytes(type, head_dim), i / 32);
  if (type == KV_Q8_0) {
    return scale * f32(i32(u32(panel[i]) << 24) >> 24);
  }
  return scale * f32(i32((u32(panel[i / 2]) >> (4u * (i % 2))) & 15u) - 8);
}

}  // namespace hearth::backend::gpu
