#pragma once
/// How the kernels read tiles. Each type's Tile<Q> says how its codes and scales come out of the
/// fields of backend/cpu/tile_fields.h:
///
///   is_signed     codes are signed bytes (dot_signed); otherwise 0...127 (dot)
///   code_bias     what unsigned codes are too large by, a power of two or 0
///   n_slots       sub-blocks that one visit() takes together, because they share vectors
///   visit(rows, group, f)   calls f(slot, quad, codes) for every four codes of those sub-blocks;
///                 slot and quad are constants
///   sub_of(group, slot)     which sub-block of the tile that is
///   scale, offset(rows, unit), sub_scale, sub_offset(rows, sub)   as in quant/integer_form.h,
///                 where the type has them

#include HEARTH_LANES

/// f(0), f(1), ... f(n - 1) with constants, so that arrays indexed by them live in registers.
template <std::size_t n, class F>
[[HEARTH_INLINE]] inline void unroll(F&& f) {
  [&]<std::size_t... i>(std::index_sequence<i...>) HEARTH_LAMBDA {
    (f(std::integral_constant<std::size_t, i>{}), ...);
  }(std::make_index_sequence<n>{});
}

/// `width` rows of one tile, from row `lane` on. Elements by field and number within the field.
template <class Q>
struct TileRows {
  const std::byte* tile;
  std::size_t lane;

  template <std::size_t element_bytes>
  [[nodiscard]] const std::byte* at(std::size_t field, std::size_t element) const {
    return tile + tile_offset<Q>(field) + element * panel_rows * element_bytes +
           lane * element_bytes;
  }
  [[HEARTH_INLINE]] [[nodiscard]] Codes codes(std::size_t field, std::size_t element) const {
    return load_codes(at<4>(field, element));
  }
  [[HEARTH_INLINE]] [[nodiscard]] Ints words(std::size_t field, std::size_t element) const {
    return load_ints(at<4>(field, element));
  }
  [[HEARTH_INLINE]] [[nodiscard]] Floats halves(std::size_t field, std::size_t element) const {
    return load_halves(at<2>(field, element));
  }
};

template <class Q>
struct Tile;

[[HEARTH_INLINE]] inline Ints bits_of(Ints words, int first, std::int32_t mask) {
  return bit_and(shift_right(words, first), same_ints(mask));
}

/// Low 16 bits of both, as dot_pairs() takes them.
[[HEARTH_INLINE]] inline Ints pair(Ints low, Ints high) {
  return bit_or(bit_and(low, same_ints(0xffff)), shift_left(high, 16));
}
