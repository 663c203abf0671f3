#pragma once
/// How the kernels read tiles. Each type's Tile<Q> says how its codes and scales come out of the
/// fields of backend/cpu/tile_fields.h:
///
///   is_signed     codes are signed bytes (dot_signed); otherwise 0...127 (dot)
///   code_bias     what unsigned codes are too large by, a power of two or 0
///   n_slots       sub-blocks that one visit() takes together, because they share vectors
///   visit(rows, group, f)   calls f(Constant<0>{}, quad, codes) for every four codes of those
///   sub-blocks;
///                 slot and quad are constants
///   sub_of(group, slot)     which sub-block of the tile that is
///   scale, offset(rows, unit), sub_scale, sub_offset(rows, sub)   as in quant/integer_form.h,
///                 where the type has them

#include HEARTH_LANES

/// What the products must know of a type at compile time.
struct TileShape {
  std::size_t block_weights;
  std::size_t unit;  // weights per float scale
  std::size_t sub;   // weights per integer scale
  std::size_t activation_block;
  bool has_offset;
  bool is_signed;
  bool has_bias;          // codes are too large by some power of two
  bool is_bias_negative;  // too small

  [[nodiscard]] constexpr std::size_t n_units() const { return block_weights / unit; }
  [[nodiscard]] constexpr bool has_subs() const { return sub < unit; }
  [[nodiscard]] constexpr std::size_t n_subs() const { return block_weights / sub; }
};

template <std::size_t n>
using Constant = std::integral_constant<std::size_t, n>;

/// f(0), f(1), ... f(n - 1) with constants, so that arrays indexed by them live in registers.
template <std::size_t n, class F>
[[HEARTH_INLINE]] inline void unroll(F&& f) {
  [&]<std::size_t... i>(std::index_sequence<i...>)
      HEARTH_LAMBDA { (f(Constant<i>{}), ...); }(std::make_index_sequence<n>{});
}

#if defined(__clang__)
#define HEARTH_KEEP_LOOP _Pragma("clang loop unroll(disable)")
#else
#define HEARTH_KEEP_LOOP _Pragma("GCC unroll 1")
#endif

/// The same as a loop that stays one: unrolled, it would only take longer to compile and to fetch.
template <std::size_t n, class F>
[[HEARTH_INLINE]] inline void repeat(F&& f) {
  if constexpr (n == 1) {
    f(std::size_t{0});
  } else {
    HEARTH_KEEP_LOOP
    for (std::size_t i = 0; i < n; ++i) {
      f(i);
    }
  }
}

/// `width` rows of one tile, from row `lane` on. Elements by field and number within the field.
template <class Q>
struct TileRows {
  const std::byte* tile;
  std::size_t lane;

  template <std::size_t element_bytes>
  [[nodiscard]] const std::byte* at(std::size_t field, std::size_t element) const {
    const TilePlace place = tile_places<Q>[field];
    return tile + (place.first + element * place.step) * panel_rows + lane * element_bytes;
  }
  /// Word number `word` of the tile, of whatever field.
  [[HEARTH_INLINE]] [[nodiscard]] Codes codes(std::size_t word) const {
    return load_codes(tile + (word * panel_rows + lane) * 4);
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
  [[HEARTH_INLINE]] [[nodiscard]] Floats bfloats(std::size_t field, std::size_t element) const {
    return as_floats(shift_left(load_unsigned_shorts(at<2>(field, element)), 16));
  }
};

template <class Q>
struct Tile;

/// Whether few activation rows meet the tiles as they are, in a kernel that is compiled for the
/// type alone. Otherwise tiles are always unpacked first, and types of one shape share all the
/// rest.
template <class Q>
inline constexpr bool has_direct_kernel = true;

/// What the codes that kernels multiply are too large by: 0, a power of two, or the negative of
/// one.
template <class Q>
inline constexpr std::int32_t code_bias =
    (Tile<Q>::is_signed ? signed_bias : std::int32_t{Tile<Q>::code_bias}) - Q::integers.code_zero;

template <class Q>
inline constexpr TileShape shape_of{.block_weights = Q::info.block_weights,
                                    .unit = Q::integers.unit,
                                    .sub = Q::integers.sub,
                                    .activation_block = Q::integers.activation_block,
                                    .has_offset = Q::integers.has_offset,
                                    .is_signed = Tile<Q>::is_signed,
                                    .has_bias = code_bias<Q> != 0,
                                    .is_bias_negative = code_bias<Q> < 0};

[[HEARTH_INLINE]] inline Ints bits_of(Ints words, int first, std::int32_t mask) {
  return bit_and(shift_right(words, first), same_ints(mask));
}

/// Low 16 bits of both, as dot_pairs() takes them.
[[HEARTH_INLINE]] inline Ints pair(Ints low, Ints high) {
  return bit_or(bit_and(low, same_ints(0xffff)), shift_left(high, 16));
}
