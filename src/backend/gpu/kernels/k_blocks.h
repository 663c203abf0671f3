#pragma once
/// Pieces of the formats with sub-scales: blocks of 256 weights, eight pieces each. quant/types/
/// has the layouts.

#include "backend/gpu/kernels/small_blocks.h"

namespace hearth::backend::gpu {

#define Q2_K_FORMAT q2_k, 84, 8, 32, 8, 256, true
#define Q3_K_FORMAT q3_k, 110, 8, 32, 8, 256, false
#define Q4_K_FORMAT q4_k, 144, 8, 32, 8, 256, true
#define Q5_K_FORMAT q5_k, 176, 8, 32, 8, 256, true
#define Q6_K_FORMAT q6_k, 210, 8, 32, 8, 256, false
#define IQ4_XS_FORMAT iq4_xs, 136, 8, 32, 8, 256, false

/// Bits of 32 bytes from `at` on: `mask` of each, after a shift to the right.
DEVICE_FN void unpack_bits(SHARED(const u32) words, u32 at, u32 shift, u32 mask,
                           THREAD_REF(Piece) piece) {
  load_words(words, at, piece.codes, 8);
  UNROLL for (u32 j = 0; j < 8; ++j) {
    piece.codes[j] = (piece.codes[j] >> shift) & mask;
  }
}

/// The same, added to the codes at bit `place` of each byte.
DEVICE_FN void add_bits(SHARED(const u32) words, u32 at, u32 shift, u32 mask, u32 place,
                        THREAD_REF(Piece) piece) {
  u32 bits[8];
  load_words(words, at, bits, 8);
  UNROLL for (u32 j = 0; j < 8; ++j) {
    piece.codes[j] |= ((bits[j] >> shift) & mask) << place;
  }
}

/// One scale and one minimum for the piece.
DEVICE_FN void set_sub_scales(u32 scale, u32 minimum, THREAD_REF(Piece) piece) {
  piece.sub_scales[0] = i32(scale);
  piece.sub_scales[1] = i32(scale);
  piece.sub_offsets[0] = i32(minimum);
  piece.sub_offsets[1] = i32(minimum);
}

DEVICE_FN void q2_k_piece(SHARED(const u32) words, u32 block, u32 i, THREAD_REF(Piece) piece) {
  piece.scale = half_at(words, block + 80);
  piece.offset = -half_at(words, block + 82);
  const u32 packed = halfword_at(words, block + 2 * i);
  piece.sub_scales[0] = i32(packed & 15u);
  piece.sub_offsets[0] = i32((packed >> 4) & 15u);
  piece.sub_scales[1] = i32((packed >> 8) & 15u);
  piece.sub_offsets[1] = i32(packed >> 12);
  unpack_bits(words, block + 16 + 32 * (i / 4), 2 * (i % 4), 0x03030303u, piece);
}

/// Sub-scale s of 16: four bits in bytes 0-7, two in bytes 8-11 of twelve.
DEVICE_FN i32 q3_k_scale(SHARED(const u32) words, u32 scales, u32 s) {
  const u32 low = (byte_at(words, scales + s % 8) >> (4 * (s / 8))) & 15u;
  const u32 high = (byte_at(words, scales + 8 + s % 4) >> (2 * (s / 4))) & 3u;
  return i32(low | high << 4) - 32;
}

DEVICE_FN void q3_k_piece(SHARED(const u32) words, u32 block, u32 i, THREAD_REF(Piece) piece) {
  piece.scale = half_at(words, block + 108);
  piece.sub_scales[0] = q3_k_scale(words, block + 96, 2 * i);
  piece.sub_scales[1] = q3_k_scale(words, block + 96, 2 * i + 1);
  unpack_bits(words, block + 32 + 32 * (i / 4), 2 * (i % 4), 0x03030303u, piece);
  add_bits(words, block, i, 0x01010101u, 2, piece);
  subtract_from_codes(0x04040404u, piece);
}

/// Scale and minimum i of 8, six bits each, from the twelve bytes in which Q4_K and Q5_K pack them
/// (quant/types/k_scales.h).
DEVICE_FN void unpack_k_scales(SHARED(const u32) words, u32 scales, u32 i,
                               THREAD_REF(Piece) piece) {
  const u32 a = byte_at(words, scales + i % 4);
  const u32 b = byte_at(words, scales + 4 + i % 4);
  const u32 c = byte_at(words, scales + 8 + i % 4);
  set_sub_scales(i < 4u ? a & 63u : (c & 15u) | (a >> 6) << 4,
                 i < 4u ? b & 63u : c >> 4 | (b >> 6) << 4, piece);
}

DEVICE_FN void q4_k_piece(SHARED(const u32) words, u32 block, u32 i, THREAD_REF(Piece) piece) {
  piece.scale = half_at(words, block);
  piece.offset = -half_at(words, block + 2);
  unpack_k_scales(words, block + 4, i, piece);
  unpack_bits(words, block + 16 + 32 * (i / 2), 4 * (i % 2), 0x0f0f0f0fu, piece);
}

DEVICE_FN void q5_k_piece(SHARED(const u32) words, u32 block, u32 i, THREAD_REF(Piece) piece) {
  piece.scale = half_at(words, block);
  piece.offset = -half_at(words, block + 2);
  unpack_k_scales(words, block + 4, i, piece);
  unpack_bits(words, block + 48 + 32 * (i / 2), 4 * (i % 2), 0x0f0f0f0fu, piece);
  add_bits(words, block + 16, i, 0x01010101u, 4, piece);
}

DEVICE_FN void q6_k_piece(SHARED(const u32) words, u32 block, u32 i, THREAD_REF(Piece) piece) {
  const u32 quarter = i % 4;  // of half i / 4
  piece.scale = half_at(words, block + 208);
  piece.sub_scales[0] = signed_byte(byte_at(words, block + 192 + 2 * i));
  piece.sub_scales[1] = signed_byte(byte_at(words, block + 193 + 2 * i));
  unpack_bits(words, block + 64 * (i / 4) + 32 * (quarter % 2), 4 * (quarter / 2), 0x0f0f0f0fu,
              piece);
  add_bits(words, block + 128 + 32 * (i / 4), 2 * quarter, 0x03030303u, 4, piece);
  subtract_from_codes(0x20202020u, piece);
}

DEVICE_FN void iq4_xs_piece(SHARED(const u32) words, u32 block, u32 i, THREAD_REF(Piece) piece) {
  piece.scale = half_at(words, block);
  const u32 low = (byte_at(words, block + 4 + i / 2) >> (4 * (i % 2))) & 15u;
  const u32 high = (halfword_at(words, block + 2) >> (2 * i)) & 3u;
  piece.sub_scales[0] = i32(low | high << 4) - 32;
  piece.sub_scales[1] = piece.sub_scales[0];
  unpack_levels(words, block + 8 + 16 * i, iq4_levels(), piece);
}

}  // namespace hearth::backend::gpu
