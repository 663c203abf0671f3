#pragma once
/// Pieces of the block formats as they lie in GGUF (quant/types/ has the layouts).

#include "backend/gpu/dialect/dialect.h"

namespace hearth::backend::gpu {

#define Q4_K_BYTES 144
#define Q6_K_BYTES 210
#define Q8_0_BYTES 34

/// The float of two bytes at an even address.
DEVICE_FN f32 half_at(DEVICE(const u8) bytes) {
  return to_f32(f16_of_bits(halfwords(bytes)[0]));
}

/// Scale (low half of the result) and minimum (high half) of sub-block j of 8, from the twelve
/// bytes in which Q4_K and Q5_K pack them.
DEVICE_FN u32 k_scale_and_min(u32 word0, u32 word1, u32 word2, u32 j) {
  const u32 shift = 8u * (j & 3u);
  const u32 a = (word0 >> shift) & 255u;
  const u32 b = (word1 >> shift) & 255u;
  const u32 c = (word2 >> shift) & 255u;
  const u32 scale = j < 4u ? (a & 63u) : ((c & 15u) | ((a >> 6) << 4));
  const u32 minimum = j < 4u ? (b & 63u) : ((c >> 4) | ((b >> 6) << 4));
  return scale | (minimum << 16);
}

/// Signed value of the low byte.
DEVICE_FN f32 signed_byte(u32 bits) {
  return f32(i32(bits << 24) >> 24);
}

// Weight i of a block.
DEVICE_FN f32 q4_k_weight(DEVICE(const u8) block, u32 i) {
  const u32x4 head = load4(words(block));  // scale and scale of minima, twelve bytes of scales
  const u32 j = i / 32;
  const u32 packed = k_scale_and_min(head.y, head.z, head.w, j);
  const u32 byte = block[16 + 32 * (i / 64) + i % 32];
  const u32 code = (j & 1u) != 0u ? byte >> 4 : byte & 15u;
  const f32 scale = to_f32(f16_of_bits(head.x & 0xffffu)) * f32(packed & 0xffffu);
  const f32 minimum = to_f32(f16_of_bits(head.x >> 16)) * f32(packed >> 16);
  return scale * f32(code) - minimum;
}

DEVICE_FN f32 q6_k_weight(DEVICE(const u8) block, u32 i) {
  const u32 half_block = i / 128;
  const u32 quarter = i % 128 / 32;
  const u32 l = i % 32;
  const u32 low = block[64 * half_block + 32 * (quarter & 1u) + l] >> (4u * (quarter >> 1));
  const u32 high = u32(block[128 + 32 * half_block + l]) >> (2u * quarter);
  const f32 code = f32(i32((low & 15u) | ((high & 3u) << 4)) - 32);
  return half_at(block + 208) * signed_byte(block[192 + i / 16]) * code;
}

DEVICE_FN f32 q8_0_weight(DEVICE(const u8) block, u32 i) {
  return half_at(block) * signed_byte(block[2 + i]);
}

}  // namespace hearth::backend::gpu
