#pragma once
/// A tile unpacked for many activation rows: one byte per code, and everything else as wide as the
/// products want it.

#include "backend/cpu/kernels/tiles/k_quants.inl"
#include "backend/cpu/kernels/tiles/small_blocks.inl"
#include "backend/cpu/kernels/tiles/tables.inl"

template <class Q>
struct UnpackedTile {
  static constexpr std::size_t n_quads = Q::info.block_weights / 4;
  static constexpr std::size_t n_units = Q::info.block_weights / Q::integers.unit;
  static constexpr bool has_subs = Q::integers.sub < Q::integers.unit;
  static constexpr std::size_t n_subs = has_subs ? Q::info.block_weights / Q::integers.sub : 0;
  static constexpr bool has_offset_pairs = has_subs && Q::integers.has_offset;
  static constexpr bool has_bias_pairs = has_subs && !Q::integers.has_offset;

  template <class T, std::size_t n>
  using PerRow = std::array<std::array<T, panel_rows>, n>;

  alignas(64) std::array<std::byte, n_quads * 4 * panel_rows> codes;
  PerRow<float, n_units> scales;
  PerRow<float, Q::integers.has_offset ? n_units : 0> offsets;
  PerRow<std::int32_t, n_subs> sub_scales;
  PerRow<std::int32_t, has_offset_pairs ? n_subs / 2 : 0> offset_pairs;
  PerRow<std::int32_t, has_bias_pairs ? n_subs / 2 : 0> bias_pairs;
};

/// Tile<Q> of what unpack() wrote.
template <class Q>
struct Unpacked {
  struct Rows {
    const UnpackedTile<Q>* tile;
    std::size_t lane;

    template <class Array>
    [[nodiscard]] const std::byte* at(const Array& array, std::size_t i) const {
      return static_cast<const std::byte*>(static_cast<const void*>(array[i].data() + lane));
    }
  };
  static constexpr std::size_t n_slots = 1;
  static constexpr bool is_signed = Tile<Q>::is_signed;
  static constexpr std::int32_t code_bias = Tile<Q>::code_bias;
  static constexpr std::size_t quads_per_sub = Q::integers.sub / 4;

  static std::size_t sub_of(std::size_t group, std::size_t /*slot*/) { return group; }

  template <class F>
  [[HEARTH_INLINE]] static void visit(const Rows& rows, std::size_t group, F&& f) {
    constexpr std::integral_constant<std::size_t, 0> slot;
    const std::byte* first =
        rows.tile->codes.data() + (group * quads_per_sub * panel_rows + rows.lane) * 4;
    unroll<quads_per_sub>(
        [&](auto i) HEARTH_LAMBDA { f(slot, i, load_codes(first + i * 4 * panel_rows)); });
  }
  [[HEARTH_INLINE]] static Floats scale(const Rows& rows, std::size_t unit) {
    return load_floats(rows.tile->scales[unit].data() + rows.lane);
  }
  [[HEARTH_INLINE]] static Floats offset(const Rows& rows, std::size_t unit) {
    return load_floats(rows.tile->offsets[unit].data() + rows.lane);
  }
  [[HEARTH_INLINE]] static Ints sub_scale(const Rows& rows, std::size_t sub) {
    return load_ints(rows.at(rows.tile->sub_scales, sub));
  }
  [[HEARTH_INLINE]] static Ints offset_pair(const Rows& rows, std::size_t i) {
    return load_ints(rows.at(rows.tile->offset_pairs, i));
  }
  [[HEARTH_INLINE]] static Ints bias_pair(const Rows& rows, std::size_t i) {
    return load_ints(rows.at(rows.tile->bias_pairs, i));
  }
};

/// Tile<Q> with what Unpacked<Q> has beside it.
template <class Q>
struct Packed : Tile<Q> {
  using Rows = TileRows<Q>;
  [[HEARTH_INLINE]] static Ints offset_pair(const Rows& rows, std::size_t i) {
    return pair(Tile<Q>::sub_offset(rows, 2 * i), Tile<Q>::sub_offset(rows, 2 * i + 1));
  }
  [[HEARTH_INLINE]] static Ints bias_pair(const Rows& rows, std::size_t i) {
    return pair(Tile<Q>::sub_scale(rows, 2 * i), Tile<Q>::sub_scale(rows, 2 * i + 1));
  }
};

template <class Q>
[[HEARTH_TARGET]] inline void unpack(const std::byte* tile, UnpackedTile<Q>& out) {
  using To = UnpackedTile<Q>;
  constexpr std::size_t n_groups = Q::info.block_weights / (Q::integers.sub * Tile<Q>::n_slots);
  for (std::size_t lane = 0; lane < panel_rows; lane += width) {
    const TileRows<Q> rows{tile, lane};
    for (std::size_t group = 0; group < n_groups; ++group) {
      Tile<Q>::visit(rows, group, [&](auto slot, auto quad, Codes codes) HEARTH_LAMBDA {
        const std::size_t at = Tile<Q>::sub_of(group, slot) * (Q::integers.sub / 4) + quad;
        store_codes(codes, out.codes.data() + (at * panel_rows + lane) * 4);
      });
    }
    for (std::size_t unit = 0; unit < To::n_units; ++unit) {
      store_floats(Tile<Q>::scale(rows, unit), out.scales[unit].data() + lane);
      if constexpr (Q::integers.has_offset) {
        store_floats(Tile<Q>::offset(rows, unit), out.offsets[unit].data() + lane);
      }
    }
    for (std::size_t sub = 0; sub < To::n_subs; ++sub) {
      if constexpr (To::has_subs) {
        store_ints(Tile<Q>::sub_scale(rows, sub), out.sub_scales[sub].data() + lane);
      }
    }
    for (std::size_t i = 0; i < To::n_subs / 2; ++i) {
      if constexpr (To::has_offset_pairs) {
        store_ints(Packed<Q>::offset_pair(rows, i), out.offset_pairs[i].data() + lane);
      } else if constexpr (To::has_bias_pairs) {
        store_ints(Packed<Q>::bias_pair(rows, i), out.bias_pairs[i].data() + lane);
      }
    }
  }
}
