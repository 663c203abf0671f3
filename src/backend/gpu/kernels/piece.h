#pragma once
/// Pieces of weights: what a lane unpacks at a time, in the integer form of quant/integer_form.h.
///
/// A simdgroup copies PASS_PIECES pieces of a row of the matrix, which lie next to each other, to
/// shared memory: formats with blocks of 18, 34 or 210 bytes have no alignment to speak of, and
/// this way each of them is read in words of 16 bytes. Each lane then takes its piece from there.

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/kernels/tile_places.h"

namespace hearth::backend::gpu {

#define PASS_PIECES 32

/// 32 weights, of NVFP4 16.
struct Piece {
  u32 codes[8];        // int8, four to a word
  i32 sub_scales[2];   // of 16 weights each
  i32 sub_offsets[2];  // of 16 weights each; only of formats with an offset term
  f32 scale;           // of the unit
  f32 offset;          // likewise
};

/// A format is described by a macro NAME_FORMAT, a row of:
///   name in front of _piece, bytes of a block, pieces of a block, weights of a piece, pieces of a
///   unit, activation block, whether there is an offset term
/// and by a function
///   NAME_piece(words, block, i, piece): piece i of the block that begins at byte `block`
/// which may leave offsets alone if there is no offset term.

#define PASS_BYTES(block_bytes, block_pieces) ((block_bytes) * PASS_PIECES / (block_pieces))

/// Words of 16 bytes around n bytes, each lane's share of them, and the words of shared memory that
/// they take with one that is read beyond the end.
#define COPY_WIDE_WORDS(n) (((n) + 30) / 16)
#define COPY_LOADS(n) ((COPY_WIDE_WORDS(n) + 31) / 32)
#define COPY_WORDS(n) (COPY_WIDE_WORDS(n) * 4 + 4)

/// A part of a row of the matrix, whose first byte is byte `begin` of a window that begins at a
/// multiple of 16 bytes.
struct CopyRange {
  u64 window;
  u32 begin;
  u32 end;
  u32 row_end;  // up to which may be read
};

/// Bytes [at, at + n) of a row that begins at byte `row_begin` of the matrix.
DEVICE_FN CopyRange copy_range(u64 row_begin, u32 row_bytes, u32 at, u32 n) {
  const u64 first = row_begin + at;
  const u32 begin = u32(first % 16u);
  const CopyRange range = {first - begin, begin, begin + n, begin + row_bytes - at};
  return range;
}

/// Four bytes, of those beyond `end` zeroes.
DEVICE_FN u32 last_word(DEVICE(const u8) from, u32 at, u32 end) {
  u32 word = 0;
  UNROLL for (u32 i = 0; i < 4; ++i) {
    word |= at + i < end ? u32(from[at + i]) << (8 * i) : 0u;
  }
  return word;
}

/// The lane's words of a range, by loads that do not wait for each other.
DEVICE_FN void load_copy(DEVICE(const u8) matrix, THREAD_REF(const CopyRange) range, u32 lane,
                         THREAD(u32x4) loaded, u32 n_loads) {
  DEVICE(const u8) window = matrix + range.window;
  const u32x4 nothing = {0, 0, 0, 0};
  UNROLL for (u32 i = 0; i < n_loads; ++i) {
    const u32 at = 16 * (32 * i + lane);
    loaded[i] = nothing;
    if (at < range.end && at + 16 <= range.row_end) {
      loaded[i] = load4(words(window + at));
    } else if (at < range.end) {
      loaded[i].x = last_word(window, at, range.row_end);
      loaded[i].y = last_word(window, at + 4, range.row_end);
      loaded[i].z = last_word(window, at + 8, range.row_end);
      loaded[i].w = last_word(window, at + 12, range.row_end);
    }
  }
}

/// Puts them into shared memory: byte i of the window becomes byte i of `to`.
DEVICE_FN void store_copy(SHARED(u32) to, u32 end, u32 lane, THREAD(const u32x4) loaded,
                          u32 n_loads) {
  UNROLL for (u32 i = 0; i < n_loads; ++i) {
    const u32 at = 16 * (32 * i + lane);
    if (at < end) {
      store4(to + at / 4, loaded[i]);
    }
  }
}

/// Puts bytes [begin, begin + n) of a row into shared memory that lies in tiles of blocks of an odd
/// number of bytes.
DEVICE_FN void gather_odd_blocks(DEVICE(const u8) matrix, u64 row, u32 n_tiles, u32 begin, u32 n,
                                 u32 lane, SHARED(u32) to) {
  const u32 row_bytes = 2 * ODD_ROW_HALVES;
  for (u32 word = lane; 4 * word < n; word += 32) {
    u32 four = 0;
    UNROLL for (u32 i = 0; i < 4; ++i) {
      const u32 at = begin + 4 * word + i;
      const u32 tile_of_row = at / row_bytes;
      if (4 * word + i < n) {
        const u64 tile = (row / TILE_ROWS * n_tiles + tile_of_row) * TILE_ROWS * row_bytes;
        const u32 byte = odd_tile_byte(u32(row % TILE_ROWS), at - tile_of_row * row_bytes);
        four |= u32(matrix[tile + byte]) << (8 * i);
      }
    }
    to[word] = four;
  }
}

/// Puts n bytes from block `first` of a row on, which lies in tiles (kernels/weight_tiles.h), into
/// shared memory as the file has them.
DEVICE_FN void gather_blocks(u32 block_bytes, DEVICE(const u8) matrix, u64 row, u32 n_blocks,
                             u32 first, u32 n, u32 lane, SHARED(u32) to) {
  const u32 n_tiles = n_blocks / TILE_BLOCKS(block_bytes);
  if (IS_ODD_BLOCK(block_bytes)) {
    gather_odd_blocks(matrix, row, n_tiles, first * block_bytes, n, lane, to);
    return;
  }
  const u32 row_halves = TILE_BLOCKS(block_bytes) * block_bytes / 2;
  const u32 begin = first * block_bytes / 2;
  for (u32 word = lane; 4 * word < n; word += 32) {
    u32 both = 0;
    UNROLL for (u32 i = 0; i < 2; ++i) {
      const u32 half_word = begin + 2 * word + i;
      const u32 tile_of_row = half_word / row_halves;
      if (2 * (2 * word + i) < n) {
        const u64 tile = (row / TILE_ROWS * n_tiles + tile_of_row) * TILE_ROWS * row_halves;
        const u32 at =
            tile_halfword(block_bytes, u32(row % TILE_ROWS), half_word - tile_of_row * row_halves);
        both |= u32(halfwords(matrix)[tile + at]) << (16 * i);
      }
    }
    to[word] = both;
  }
}

/// n words from byte `at` on.
DEVICE_FN void load_words(SHARED(const u32) words, u32 at, THREAD(u32) to, u32 n) {
  const u32 shift = 8 * (at % 4);
  u64 low = words[at / 4];
  UNROLL for (u32 i = 0; i < n; ++i) {
    const u64 high = words[at / 4 + 1 + i];
    to[i] = u32((high << 32 | low) >> shift);
    low = high;
  }
}

DEVICE_FN u32 byte_at(SHARED(const u32) words, u32 at) {
  return (words[at / 4] >> (8 * (at % 4))) & 255u;
}

/// Two bytes at an even place.
DEVICE_FN u32 halfword_at(SHARED(const u32) words, u32 at) {
  return (words[at / 4] >> (8 * (at % 4))) & 0xffffu;
}

DEVICE_FN f32 half_at(SHARED(const u32) words, u32 at) {
  return to_f32(f16_of_bits(halfword_at(words, at)));
}

/// Signed value of the low byte.
DEVICE_FN i32 signed_byte(u32 bits) {
  return i32(bits << 24) >> 24;
}

/// Each byte, below 128, less the byte of `bias`.
DEVICE_FN u32 subtract_bytes(u32 bytes, u32 bias) {
  return ((bytes | 0x80808080u) - bias) ^ 0x80808080u;
}

/// The float that code i of a piece stands for: both products are exact, as in quant/decode.h.
DEVICE_FN f32 piece_weight(THREAD_REF(const Piece) piece, u32 i, bool has_offset) {
  const f32 code = f32(signed_byte(piece.codes[i / 4] >> (8 * (i % 4))));
  const f32 weight = piece.scale * f32(piece.sub_scales[i / 16]) * code;
  return has_offset ? weight + piece.offset * f32(piece.sub_offsets[i / 16]) : weight;
}

}  // namespace hearth::backend::gpu
