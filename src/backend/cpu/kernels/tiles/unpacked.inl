#pragma once
/// A tile unpacked for many activation rows: one byte per code, and everything else as wide as the
/// products want it. Types of the same shape look the same from here on and share their code.

#include "backend/cpu/kernels/tiles/affine.inl"
#include "backend/cpu/kernels/tiles/k_quants.inl"
#include "backend/cpu/kernels/tiles/small_blocks.inl"
#include "backend/cpu/kernels/tiles/tables.inl"

template <TileShape shape>
struct UnpackedTile {
  static constexpr std::size_t n_subs = shape.has_subs() ? shape.n_subs() : 0;
  static constexpr std::size_t n_offset_pairs = shape.has_offset ? n_subs / 2 : 0;
  static constexpr std::size_t n_bias_pairs = shape.has_bias ? n_subs / 2 : 0;

  template <class T, std::size_t n>
  using PerRow = std::array<std::array<T, panel_rows>, n>;

  alignas(64) std::array<std::byte, shape.block_weights * panel_rows> codes;
  PerRow<float, shape.n_units()> scales;
  PerRow<float, shape.has_offset ? shape.n_units() : 0> offsets;
  PerRow<std::int32_t, n_subs> sub_scales;
  PerRow<std::int32_t, n_offset_pairs> offset_pairs;
  PerRow<std::int32_t, n_bias_pairs> bias_pairs;
  int bias_shift;
};

/// A row of one of the arrays, from lane `lane` on.
template <class T>
[[HEARTH_INLINE]] inline Ints load_row(const std::array<T, panel_rows>& row, std::size_t lane) {
  return load_ints(static_cast<const std::byte*>(static_cast<const void*>(row.data() + lane)));
}

/// Tile<Q> of what unpack() wrote.
template <TileShape tile_shape>
struct Unpacked {
  struct Rows {
    const UnpackedTile<tile_shape>* tile;
    std::size_t lane;
  };
  static constexpr TileShape shape = tile_shape;
  static constexpr std::size_t n_slots = 1;
  static constexpr std::size_t quads_per_sub = shape.sub / 4;

  static std::size_t sub_of(std::size_t group, std::size_t /*slot*/) { return group; }

  template <class F>
  [[HEARTH_INLINE]] static void visit(const Rows& rows, std::size_t group, F&& f) {
    const std::byte* first =
        rows.tile->codes.data() + (group * quads_per_sub * panel_rows + rows.lane) * 4;
    unroll<quads_per_sub>(
        [&](auto i) HEARTH_LAMBDA { f(Constant<0>{}, i, load_codes(first + i * 4 * panel_rows)); });
  }
  [[HEARTH_INLINE]] static Floats scale(const Rows& rows, std::size_t unit) {
    return load_floats(rows.tile->scales[unit].data() + rows.lane);
  }
  [[HEARTH_INLINE]] static Floats offset(const Rows& rows, std::size_t unit) {
    return load_floats(rows.tile->offsets[unit].data() + rows.lane);
  }
  [[HEARTH_INLINE]] static Ints sub_scale(const Rows& rows, std::size_t sub) {
    return load_row(rows.tile->sub_scales[sub], rows.lane);
  }
  [[HEARTH_INLINE]] static Ints offset_pair(const Rows& rows, std::size_t i) {
    return load_row(rows.tile->offset_pairs[i], rows.lane);
  }
  [[HEARTH_INLINE]] static Ints bias_pair(const Rows& rows, std::size_t i) {
    return load_row(rows.tile->bias_pairs[i], rows.lane);
  }
  [[HEARTH_INLINE]] static Ints times_bias(const Rows& rows, Ints sum) {
    return shift_left(sum, rows.tile->bias_shift);
  }
};

/// Tile<Q> with what Unpacked has beside it.
template <class Q>
struct Packed : Tile<Q> {
  using Rows = TileRows<Q>;
  static constexpr TileShape shape = shape_of<Q>;
  static constexpr std::int32_t bias_size = code_bias<Q> < 0 ? -code_bias<Q> : code_bias<Q>;
  static constexpr int bias_shift =
      bias_size == 0 ? 0 : std::countr_zero(static_cast<std::uint32_t>(bias_size));
  static_assert(bias_size == 0 || bias_size == 1 << bias_shift);

  [[HEARTH_INLINE]] static Ints offset_pair(const Rows& rows, std::size_t i) {
    return pair(Tile<Q>::sub_offset(rows, 2 * i), Tile<Q>::sub_offset(rows, 2 * i + 1));
  }
  [[HEARTH_INLINE]] static Ints bias_pair(const Rows& rows, std::size_t i) {
    return pair(Tile<Q>::sub_scale(rows, 2 * i), Tile<Q>::sub_scale(rows, 2 * i + 1));
  }
  [[HEARTH_INLINE]] static Ints times_bias(const Rows& /*rows*/, Ints sum) {
    return shift_left(sum, bias_shift);
  }
};

template <class Q>
[[HEARTH_TARGET]] inline void unpack(const std::byte* tile, UnpackedTile<shape_of<Q>>& out) {
  static constexpr TileShape shape = shape_of<Q>;
  for (std::size_t lane = 0; lane < panel_rows; lane += width) {
    const TileRows<Q> rows{tile, lane};
    repeat<shape.n_subs() / Tile<Q>::n_slots>([&](std::size_t group) HEARTH_LAMBDA {
      Tile<Q>::visit(rows, group, [&](auto slot, auto quad, Codes codes) HEARTH_LAMBDA {
        const std::size_t at = Tile<Q>::sub_of(group, slot) * (shape.sub / 4) + quad;
        store_codes(codes, out.codes.data() + (at * panel_rows + lane) * 4);
      });
    });
    repeat<shape.n_units()>([&](std::size_t unit) HEARTH_LAMBDA {
      store_floats(Tile<Q>::scale(rows, unit), out.scales[unit].data() + lane);
      if constexpr (shape.has_offset) {
        store_floats(Tile<Q>::offset(rows, unit), out.offsets[unit].data() + lane);
      }
    });
    if constexpr (shape.has_subs()) {
      repeat<shape.n_subs()>([&](std::size_t sub) HEARTH_LAMBDA {
        store_ints(Tile<Q>::sub_scale(rows, sub), out.sub_scales[sub].data() + lane);
      });
      repeat<shape.n_subs() / 2>([&](std::size_t i) HEARTH_LAMBDA {
        if constexpr (shape.has_offset) {
          store_ints(Packed<Q>::offset_pair(rows, i), out.offset_pairs[i].data() + lane);
        }
        if constexpr (shape.has_bias) {
          store_ints(Packed<Q>::bias_pair(rows, i), out.bias_pairs[i].data() + lane);
        }
      });
    }
  }
  out.bias_shift = Packed<Q>::bias_shift;
}
