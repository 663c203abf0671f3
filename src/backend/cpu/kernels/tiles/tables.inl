#pragma once
/// Types whose codes are indices into a table of sixteen levels.

#include "backend/cpu/kernels/tiles/small_blocks.inl"

/// Words `first` to `first` + n - 1 of field 0: low nibbles are quads 0 to n - 1, high ones n to
/// 2n - 1.
template <std::size_t n, class Q, class F>
[[HEARTH_INLINE]] inline void visit_levels(const TileRows<Q>& rows, std::size_t first,
                                           const std::array<std::int8_t, 16>& levels, F&& f) {
  unroll<n>([&](auto i) HEARTH_LAMBDA {
    const Codes nibbles = rows.codes(0, first + i);
    f(Constant<0>{}, i, offset_signed(look_up(levels, bits<0, 0, 15>(nibbles))));
    f(Constant<0>{}, Constant<i + n>{}, offset_signed(look_up(levels, bits<4, 0, 15>(nibbles))));
  });
}

template <>
struct Tile<quant::IQ4_NL> : OneSubBlock<quant::IQ4_NL> {
  using Rows = TileRows<quant::IQ4_NL>;
  static constexpr bool is_signed = true;

  template <class F>
  [[HEARTH_INLINE]] static void visit(const Rows& rows, std::size_t, F&& f) {
    visit_levels<4>(rows, 0, quant::iq4_levels, f);
  }
  [[HEARTH_INLINE]] static Floats scale(const Rows& rows, std::size_t) { return rows.halves(1, 0); }
};

template <>
struct Tile<quant::IQ4_XS> : OneSubBlock<quant::IQ4_XS> {
  using Rows = TileRows<quant::IQ4_XS>;
  static constexpr bool is_signed = true;

  template <class F>
  [[HEARTH_INLINE]] static void visit(const Rows& rows, std::size_t group, F&& f) {
    visit_levels<4>(rows, 4 * group, quant::iq4_levels, f);
  }
  [[HEARTH_INLINE]] static Floats scale(const Rows& rows, std::size_t) { return rows.halves(3, 0); }
  [[HEARTH_INLINE]] static Ints sub_scale(const Rows& rows, std::size_t sub) {
    const auto s = static_cast<int>(sub);
    const Ints low = bits_of(rows.words(1, 0), 4 * s, 15);
    const Ints high = bits_of(load_unsigned_shorts(rows.at<2>(2, 0)), 2 * s, 3);
    return subtract(bit_or(low, shift_left(high, 4)), same_ints(32));
  }
};

template <>
struct Tile<quant::MXFP4> : OneSubBlock<quant::MXFP4> {
  using Rows = TileRows<quant::MXFP4>;
  static constexpr bool is_signed = true;

  template <class F>
  [[HEARTH_INLINE]] static void visit(const Rows& rows, std::size_t, F&& f) {
    visit_levels<4>(rows, 0, quant::doubled_e2m1, f);
  }
  /// 2^(exponent - 128), as the exact product of two powers that are not subnormal.
  [[HEARTH_INLINE]] static Floats scale(const Rows& rows, std::size_t) {
    const Ints exponents = load_unsigned_bytes(rows.at<1>(1, 0));
    const Ints half = shift_right(exponents, 1);
    const Ints rest = subtract(exponents, half);
    return multiply(power(half, -63), power(rest, -65));
  }

 private:
  /// 2^(exponents + shift)
  [[HEARTH_INLINE]] static Floats power(Ints exponents, std::int32_t shift) {
    return as_floats(shift_left(add(exponents, same_ints(127 + shift)), 23));
  }
};

template <>
struct Tile<quant::NVFP4> : OneSubBlock<quant::NVFP4> {
  using Rows = TileRows<quant::NVFP4>;
  static constexpr bool is_signed = true;

  template <class F>
  [[HEARTH_INLINE]] static void visit(const Rows& rows, std::size_t group, F&& f) {
    visit_levels<2>(rows, 2 * group, quant::doubled_e2m1, f);
  }
  [[HEARTH_INLINE]] static Floats scale(const Rows& rows, std::size_t unit) {
    std::array<float, width> scales;
    for (std::size_t j = 0; j < width; ++j) {
      scales[j] = quant::halved_e4m3[load<std::uint8_t>(rows.at<1>(1, unit), j)];
    }
    return load_floats(scales.data());
  }
};
