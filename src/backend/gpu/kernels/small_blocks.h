#pragma once
/// Pieces of the formats without sub-scales: blocks of 32 weights, and NVFP4. quant/types/ has the
/// layouts.

#include "backend/gpu/kernels/piece.h"

namespace hearth::backend::gpu {

#define Q4_0_FORMAT q4_0, 18, 1, 32, 1, 32, false
#define Q4_1_FORMAT q4_1, 20, 1, 32, 1, 32, true
#define Q5_0_FORMAT q5_0, 22, 1, 32, 1, 32, false
#define Q5_1_FORMAT q5_1, 24, 1, 32, 1, 32, true
#define Q8_0_FORMAT q8_0, 34, 1, 32, 1, 32, false
#define IQ4_NL_FORMAT iq4_nl, 18, 1, 32, 1, 32, false
#define MXFP4_FORMAT mxfp4, 17, 1, 32, 1, 32, false
#define NVFP4_FORMAT nvfp4, 36, 4, 16, 1, 32, false

DEVICE_FN void no_sub_scales(THREAD_REF(Piece) piece) {
  piece.sub_scales[0] = 1;
  piece.sub_scales[1] = 1;
  piece.sub_offsets[0] = 1;
  piece.sub_offsets[1] = 1;
}

/// Sixteen bytes from `at` on: low nibbles are weights 0-15, high nibbles 16-31.
DEVICE_FN void unpack_nibbles(SHARED(const u32) words, u32 at, THREAD_REF(Piece) piece) {
  u32 nibbles[4];
  load_words(words, at, nibbles, 4);
  UNROLL for (u32 i = 0; i < 4; ++i) {
    piece.codes[i] = nibbles[i] & 0x0f0f0f0fu;
    piece.codes[4 + i] = (nibbles[i] >> 4) & 0x0f0f0f0fu;
  }
}

/// Bit i of the low four becomes bit 4 of byte i.
DEVICE_FN u32 fifth_bits(u32 bits) {
  return (((bits & 15u) * 0x00204081u) & 0x01010101u) << 4;
}

/// Nibbles at `at`, fifth bits in the word at `high`.
DEVICE_FN void unpack_five_bits(SHARED(const u32) words, u32 at, u32 high,
                                THREAD_REF(Piece) piece) {
  unpack_nibbles(words, at, piece);
  u32 bits[1];
  load_words(words, high, bits, 1);
  UNROLL for (u32 i = 0; i < 8; ++i) {
    piece.codes[i] |= fifth_bits(bits[0] >> (4 * i));
  }
}

DEVICE_FN void subtract_from_codes(u32 bias, THREAD_REF(Piece) piece) {
  UNROLL for (u32 i = 0; i < 8; ++i) {
    piece.codes[i] = subtract_bytes(piece.codes[i], bias);
  }
}

/// The bytes of a table of sixteen, in four words, that the low nibbles of `nibbles` choose, and
/// those that the high ones do.
DEVICE_FN void look_up_nibbles(u32 nibbles, u32x4 table, THREAD_REF(u32) low,
                               THREAD_REF(u32) high) {
  // Four places at a time: both halves of the table, then the one that the nibble's high bit says.
  const u32 halves = 0x32103210u | ((nibbles & 0x88888888u) >> 1);
  const u32 first = pick_bytes(pick_bytes(table.x, table.y, nibbles),
                               pick_bytes(table.z, table.w, nibbles), halves);
  const u32 second = pick_bytes(pick_bytes(table.x, table.y, nibbles >> 16),
                                pick_bytes(table.z, table.w, nibbles >> 16), halves >> 16);
  low = pick_bytes(first, second, 0x6420u);
  high = pick_bytes(first, second, 0x7531u);
}

/// As unpack_nibbles(), with the nibbles as places in a table.
DEVICE_FN void unpack_levels(SHARED(const u32) words, u32 at, u32x4 table,
                             THREAD_REF(Piece) piece) {
  u32 nibbles[4];
  load_words(words, at, nibbles, 4);
  UNROLL for (u32 i = 0; i < 4; ++i) {
    look_up_nibbles(nibbles[i], table, piece.codes[i], piece.codes[4 + i]);
  }
}

/// -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113
DEVICE_FN u32x4 iq4_levels() {
  const u32x4 levels = {0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u};
  return levels;
}

/// 0, 1, 2, 3, 4, 6, 8, 12, and the same negative
DEVICE_FN u32x4 doubled_e2m1() {
  const u32x4 values = {0x03020100u, 0x0c080604u, 0xfdfeff00u, 0xf4f8fafcu};
  return values;
}

DEVICE_FN void q4_0_piece(SHARED(const u32) words, u32 block, u32 i, THREAD_REF(Piece) piece) {
  no_sub_scales(piece);
  piece.scale = half_at(words, block);
  unpack_nibbles(words, block + 2 + 16 * i, piece);
  subtract_from_codes(0x08080808u, piece);
}

DEVICE_FN void q4_1_piece(SHARED(const u32) words, u32 block, u32 i, THREAD_REF(Piece) piece) {
  no_sub_scales(piece);
  piece.scale = half_at(words, block);
  piece.offset = half_at(words, block + 2);
  unpack_nibbles(words, block + 4 + 16 * i, piece);
}

DEVICE_FN void q5_0_piece(SHARED(const u32) words, u32 block, u32 i, THREAD_REF(Piece) piece) {
  no_sub_scales(piece);
  piece.scale = half_at(words, block);
  unpack_five_bits(words, block + 6 + 16 * i, block + 2, piece);
  subtract_from_codes(0x10101010u, piece);
}

DEVICE_FN void q5_1_piece(SHARED(const u32) words, u32 block, u32 i, THREAD_REF(Piece) piece) {
  no_sub_scales(piece);
  piece.scale = half_at(words, block);
  piece.offset = half_at(words, block + 2);
  unpack_five_bits(words, block + 8 + 16 * i, block + 4, piece);
}

DEVICE_FN void q8_0_piece(SHARED(const u32) words, u32 block, u32 i, THREAD_REF(Piece) piece) {
  no_sub_scales(piece);
  piece.scale = half_at(words, block);
  load_words(words, block + 2 + 32 * i, piece.codes, 8);
}

DEVICE_FN void iq4_nl_piece(SHARED(const u32) words, u32 block, u32 i, THREAD_REF(Piece) piece) {
  no_sub_scales(piece);
  piece.scale = half_at(words, block);
  unpack_levels(words, block + 2 + 16 * i, iq4_levels(), piece);
}

/// The scale is 2^(exponent - 128). The first two are subnormal.
DEVICE_FN void mxfp4_piece(SHARED(const u32) words, u32 block, u32 i, THREAD_REF(Piece) piece) {
  no_sub_scales(piece);
  const u32 exponent = byte_at(words, block);
  piece.scale = f32_of_bits(exponent < 2u ? 0x00200000u << (exponent & 1u) : (exponent - 1u) << 23);
  unpack_levels(words, block + 1 + 16 * i, doubled_e2m1(), piece);
}

/// Half of an unsigned E4M3 value; the sign is ignored, and 0x7f, a NaN, counts as 0.
DEVICE_FN f32 halved_e4m3(u32 code) {
  const u32 exponent = (code >> 3) & 15u;
  const u32 mantissa = code & 7u;
  const f32 subnormal = f32(mantissa) * 0.0009765625f;  // 2^-10
  const f32 normal = f32_of_bits((exponent + (127u - 8u)) << 23 | mantissa << 20);
  const f32 value = exponent == 0u ? subnormal : normal;
  return code == 0x7fu ? 0.0f : value;
}

DEVICE_FN void nvfp4_piece(SHARED(const u32) words, u32 block, u32 i, THREAD_REF(Piece) piece) {
  no_sub_scales(piece);
  piece.scale = halved_e4m3(byte_at(words, block + i));
  u32 nibbles[2];
  load_words(words, block + 4 + 8 * i, nibbles, 2);
  look_up_nibbles(nibbles[0], doubled_e2m1(), piece.codes[0], piece.codes[2]);
  look_up_nibbles(nibbles[1], doubled_e2m1(), piece.codes[1], piece.codes[3]);
}

}  // namespace hearth::backend::gpu
