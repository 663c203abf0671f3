#pragma once
/// Native rows to tiles (backend/cpu/tile_fields.h).

#include "backend/cpu/kernels/tiles/tile.inl"

/// Four rows of n 32-bit words become columns: word i of row r goes to lane r of the 16 lanes that
/// begin at out + i * entry. n is a multiple of four.
[[HEARTH_INLINE]] inline void turn_four_rows(const std::array<const std::byte*, 4>& rows,
                                             std::size_t n, std::byte* out, std::size_t entry) {
  using Words [[gnu::vector_size(16)]] = std::uint32_t;
  for (std::size_t i = 0; i < n; i += 4) {
    const std::size_t at = i * sizeof(std::uint32_t);
    const auto a = load<Words>(rows[0], at);
    const auto b = load<Words>(rows[1], at);
    const auto c = load<Words>(rows[2], at);
    const auto d = load<Words>(rows[3], at);
    const Words ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const Words ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const Words cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const Words cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    store<Words>(out, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5), i * entry);
    store<Words>(out, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7), (i + 1) * entry);
    store<Words>(out, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5), (i + 2) * entry);
    store<Words>(out, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7), (i + 3) * entry);
  }
}

/// One field of four rows' blocks, which are lanes `lane` and following of the tile.
template <class Q, std::size_t i_field>
[[HEARTH_INLINE]] inline void turn_field(const std::array<const std::byte*, 4>& blocks,
                                         std::byte* tile, std::size_t lane) {
  constexpr TileField field = tile_fields<Q>[i_field];
  constexpr TilePlace place = tile_places<Q>[i_field];
  std::array<const std::byte*, 4> elements;
  for (std::size_t r = 0; r < 4; ++r) {
    elements[r] = blocks[r] + field.offset;
  }
  std::byte* out = tile + place.first * panel_rows + lane * field.element_bytes;
  constexpr std::size_t entry = place.step * panel_rows;
  if constexpr (field.element_bytes == 4 && field.count % 4 == 0) {
    turn_four_rows(elements, field.count, out, entry);
  } else {
    for (std::size_t i = 0; i < field.count; ++i) {
      for (std::size_t r = 0; r < 4; ++r) {
        std::memcpy(out + i * entry + r * field.element_bytes,
                    elements[r] + i * field.element_bytes, field.element_bytes);
      }
    }
  }
}

/// A panel of n_rows native rows, 1 to 16, to n_in / block tiles; lanes beyond repeat the last row.
template <class Q>
[[HEARTH_TARGET]] void interleave_panel(const std::byte* rows, std::int64_t row_bytes,
                                        std::int64_t n_rows, std::int64_t n_in, std::byte* tiles) {
  for (std::int64_t k = 0; k < n_in / Q::info.block_weights; ++k) {
    std::byte* tile = tiles + k * panel_rows * Q::info.block_bytes;
    for (std::int64_t lane = 0; lane < panel_rows; lane += 4) {
      std::array<const std::byte*, 4> blocks;
      for (std::int64_t r = 0; r < 4; ++r) {
        blocks[static_cast<std::size_t>(r)] =
            rows + std::min(lane + r, n_rows - 1) * row_bytes + k * Q::info.block_bytes;
      }
      unroll<tile_fields<Q>.size()>([&](auto i) HEARTH_LAMBDA {
        turn_field<Q, i>(blocks, tile, static_cast<std::size_t>(lane));
      });
    }
  }
}
