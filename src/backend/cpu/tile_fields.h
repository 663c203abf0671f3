#pragma once
/// Tiles: sixteen weight rows by one block, with the bytes of sixteen native blocks in another
/// order, so that one vector load has the same place of every row.
///
/// A tile is a list of fields, each a run of equal elements of the native block (32-bit words of
/// codes, f16 scales, bytes of scales). Of each element the values of all sixteen rows follow each
/// other. Tiles of a panel of sixteen rows follow each other in order of k, and panels in order of
/// rows, so a thread that owns some panels reads one stretch of memory. Kernels of every
/// instruction set read the same tiles, narrower ones in parts.
///
/// Codes lie in the order in which kernels read them. Where a code has its bits in two or three
/// places, those take turns: a kernel that went back and forth between two runs of a tile would be
/// fast in cache, but lose half of the memory's bandwidth, because processors foresee one ascending
/// sequence of addresses and not several.

#include <array>
#include <cstddef>
#include <cstdint>

#include "quant/all_types.h"

namespace hearth::backend::cpu {

/// Weight rows of a tile, and of a panel.
inline constexpr std::int64_t panel_rows = 16;

struct TileField {
  std::size_t offset;         // in the native block
  std::size_t element_bytes;  // 1, 2 or 4
  std::size_t count;          // elements
  std::size_t turns = 1;      // so many fields, alike but for the offset, take turns in the tile
};

/// The fields of a type's tiles; empty for types that are only multiplied in their native layout.
/// Words come first, which keeps the vectors of codes aligned where the size of the tile allows.
template <class Q>
inline constexpr auto tile_fields = std::array<TileField, 0>{};

template <>
inline constexpr auto tile_fields<quant::F32> = std::array{TileField{0, 4, 1}};
template <>
inline constexpr auto tile_fields<quant::F16> = std::array{TileField{0, 2, 1}};
template <>
inline constexpr auto tile_fields<quant::BF16> = std::array{TileField{0, 2, 1}};
template <>
inline constexpr auto tile_fields<quant::Q4_0> = std::array{
    TileField{offsetof(quant::Q4_0::Block, q), 4, 4},
    TileField{offsetof(quant::Q4_0::Block, scale), 2, 1},
};
template <>
inline constexpr auto tile_fields<quant::Q4_1> = std::array{
    TileField{offsetof(quant::Q4_1::Block, q), 4, 4},
    TileField{offsetof(quant::Q4_1::Block, scale), 2, 2},
};
template <>
inline constexpr auto tile_fields<quant::Q5_0> = std::array{
    TileField{offsetof(quant::Q5_0::Block, q), 4, 4},
    TileField{offsetof(quant::Q5_0::Block, high), 4, 1},
    TileField{offsetof(quant::Q5_0::Block, scale), 2, 1},
};
template <>
inline constexpr auto tile_fields<quant::Q5_1> = std::array{
    TileField{offsetof(quant::Q5_1::Block, q), 4, 4},
    TileField{offsetof(quant::Q5_1::Block, high), 4, 1},
    TileField{offsetof(quant::Q5_1::Block, scale), 2, 2},
};
template <>
inline constexpr auto tile_fields<quant::Q8_0> = std::array{
    TileField{offsetof(quant::Q8_0::Block, q), 4, 8},
    TileField{offsetof(quant::Q8_0::Block, scale), 2, 1},
};
template <>
inline constexpr auto tile_fields<quant::IQ4_NL> = std::array{
    TileField{offsetof(quant::IQ4_NL::Block, q), 4, 4},
    TileField{offsetof(quant::IQ4_NL::Block, scale), 2, 1},
};
template <>
inline constexpr auto tile_fields<quant::MXFP4> = std::array{
    TileField{offsetof(quant::MXFP4::Block, q), 4, 4},
    TileField{offsetof(quant::MXFP4::Block, exponent), 1, 1},
};
template <>
inline constexpr auto tile_fields<quant::NVFP4> = std::array{
    TileField{offsetof(quant::NVFP4::Block, q), 4, 8},
    TileField{offsetof(quant::NVFP4::Block, scales), 1, 4},
};
template <>
inline constexpr auto tile_fields<quant::Q2_K> = std::array{
    TileField{offsetof(quant::Q2_K::Block, q), 4, 16},
    TileField{offsetof(quant::Q2_K::Block, scales), 1, 16},
    TileField{offsetof(quant::Q2_K::Block, scale), 2, 2},
};
template <>
inline constexpr auto tile_fields<quant::Q3_K> = std::array{
    TileField{offsetof(quant::Q3_K::Block, q), 4, 8, 2},
    TileField{offsetof(quant::Q3_K::Block, high), 4, 8, 2},
    TileField{offsetof(quant::Q3_K::Block, q) + 32, 4, 8},
    TileField{offsetof(quant::Q3_K::Block, scales), 4, 3},
    TileField{offsetof(quant::Q3_K::Block, scale), 2, 1},
};
template <>
inline constexpr auto tile_fields<quant::Q4_K> = std::array{
    TileField{offsetof(quant::Q4_K::Block, q), 4, 32},
    TileField{offsetof(quant::Q4_K::Block, scales), 4, 3},
    TileField{offsetof(quant::Q4_K::Block, scale), 2, 2},
};
template <>
inline constexpr auto tile_fields<quant::Q5_K> = std::array{
    TileField{offsetof(quant::Q5_K::Block, q), 4, 8, 2},
    TileField{offsetof(quant::Q5_K::Block, high), 4, 8, 2},
    TileField{offsetof(quant::Q5_K::Block, q) + 32, 4, 24},
    TileField{offsetof(quant::Q5_K::Block, scales), 4, 3},
    TileField{offsetof(quant::Q5_K::Block, scale), 2, 2},
};
template <>
inline constexpr auto tile_fields<quant::Q6_K> = std::array{
    TileField{offsetof(quant::Q6_K::Block, low), 4, 4, 3},
    TileField{offsetof(quant::Q6_K::Block, low) + 32, 4, 4, 3},
    TileField{offsetof(quant::Q6_K::Block, high), 4, 4, 3},
    TileField{offsetof(quant::Q6_K::Block, low) + 16, 4, 4, 3},
    TileField{offsetof(quant::Q6_K::Block, low) + 48, 4, 4, 3},
    TileField{offsetof(quant::Q6_K::Block, high) + 16, 4, 4, 3},
    TileField{offsetof(quant::Q6_K::Block, low) + 64, 4, 4, 3},
    TileField{offsetof(quant::Q6_K::Block, low) + 96, 4, 4, 3},
    TileField{offsetof(quant::Q6_K::Block, high) + 32, 4, 4, 3},
    TileField{offsetof(quant::Q6_K::Block, low) + 80, 4, 4, 3},
    TileField{offsetof(quant::Q6_K::Block, low) + 112, 4, 4, 3},
    TileField{offsetof(quant::Q6_K::Block, high) + 48, 4, 4, 3},
    TileField{offsetof(quant::Q6_K::Block, scales), 1, 16},
    TileField{offsetof(quant::Q6_K::Block, scale), 2, 1},
};
template <>
inline constexpr auto tile_fields<quant::IQ4_XS> = std::array{
    TileField{offsetof(quant::IQ4_XS::Block, q), 4, 32},
    TileField{offsetof(quant::IQ4_XS::Block, scales_low), 4, 1},
    TileField{offsetof(quant::IQ4_XS::Block, scales_high), 2, 1},
    TileField{offsetof(quant::IQ4_XS::Block, scale), 2, 1},
};
/// Words of planes, then the scale and the offset.
template <std::size_t bits, class Scale>
inline constexpr auto tile_fields<quant::Affine<bits, Scale>> = [] {
  constexpr std::size_t n_words = quant::Affine<bits, Scale>::n_runs * bits;
  return std::array{TileField{0, 4, n_words}, TileField{4 * n_words, sizeof(Scale), 2}};
}();

template <class Q>
inline constexpr bool has_tiles = !tile_fields<Q>.empty();

/// Where the elements of a field lie in the tile of one row; that of sixteen is as many times
/// larger.
struct TilePlace {
  std::size_t first;  // byte of the first element
  std::size_t step;   // bytes from one element to the next
};

/// By field.
template <class Q>
inline constexpr auto tile_places = [] {
  std::array<TilePlace, tile_fields<Q>.size()> places{};
  std::size_t bytes = 0;
  for (std::size_t first = 0; first < places.size(); first += tile_fields<Q>[first].turns) {
    const auto& field = tile_fields<Q>[first];
    for (std::size_t i = 0; i < field.turns; ++i) {
      places[first + i] = {bytes + i * field.element_bytes, field.turns * field.element_bytes};
    }
    bytes += field.turns * field.count * field.element_bytes;
  }
  return places;
}();

/// True if the fields cover every byte of a block once, for use in static_assert.
template <class Q>
constexpr bool tile_covers_block() {
  std::array<int, static_cast<std::size_t>(Q::info.block_bytes)> times{};
  for (const auto& field : tile_fields<Q>) {
    for (std::size_t i = 0; i < field.element_bytes * field.count; ++i) {
      ++times[field.offset + i];
    }
  }
  for (const int n : times) {
    if (n != 1) {
      return false;
    }
  }
  return true;
}

}  // namespace hearth::backend::cpu
