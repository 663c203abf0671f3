#pragma once
/// Types of 32 weights with one scale: a word holds four codes, low nibbles weights 0-15, high
/// nibbles 16-31.

#include "backend/cpu/kernels/tiles/tile.inl"

template <class Q>
struct OneSubBlock {
  static constexpr std::size_t n_slots = 1;
  static constexpr bool is_signed = false;
  static constexpr std::int32_t code_bias = 0;
  static std::size_t sub_of(std::size_t group, std::size_t /*slot*/) { return group; }
};

template <>
struct Tile<quant::Q4_0> : OneSubBlock<quant::Q4_0> {
  using Rows = TileRows<quant::Q4_0>;
  static constexpr std::int32_t code_bias = 8;

  template <class F>
  [[HEARTH_INLINE]] static void visit(const Rows& rows, std::size_t, F&& f) {
    unroll<4>([&](auto i) HEARTH_LAMBDA {
      const Codes nibbles = rows.codes(0, i);
      f(Constant<0>{}, i, bits<0, 0, 15>(nibbles));
      f(Constant<0>{}, Constant<i + 4>{}, bits<4, 0, 15>(nibbles));
    });
  }
  [[HEARTH_INLINE]] static Floats scale(const Rows& rows, std::size_t) { return rows.halves(1, 0); }
};

template <>
struct Tile<quant::Q4_1> : OneSubBlock<quant::Q4_1> {
  using Rows = TileRows<quant::Q4_1>;

  template <class F>
  [[HEARTH_INLINE]] static void visit(const Rows& rows, std::size_t group, F&& f) {
    Tile<quant::Q4_0>::visit({rows.tile, rows.lane}, group, f);
  }
  [[HEARTH_INLINE]] static Floats scale(const Rows& rows, std::size_t) { return rows.halves(1, 0); }
  [[HEARTH_INLINE]] static Floats offset(const Rows& rows, std::size_t) {
    return rows.halves(1, 1);
  }
};

/// Bits `first` to `first` + 3 of each word, as the fifth bits of four codes.
[[HEARTH_INLINE]] inline Codes fifth_bits(Ints words, int first) {
  // Copies 7 bits apart bring bit i of a nibble to bit 0 of byte i, without carries.
  const Ints nibble = bits_of(words, first, 15);
  const Ints spread = multiply(nibble, same_ints(1 | 1 << 7 | 1 << 14 | 1 << 21));
  return as_codes(shift_left(bit_and(spread, same_ints(0x01010101)), 4));
}

template <>
struct Tile<quant::Q5_0> : OneSubBlock<quant::Q5_0> {
  using Rows = TileRows<quant::Q5_0>;
  static constexpr std::int32_t code_bias = 16;

  template <class F>
  [[HEARTH_INLINE]] static void visit(const Rows& rows, std::size_t, F&& f) {
    const Ints high = rows.words(1, 0);
    unroll<4>([&](auto i) HEARTH_LAMBDA {
      const Codes nibbles = rows.codes(0, i);
      f(Constant<0>{}, i, bit_or(bits<0, 0, 15>(nibbles), fifth_bits(high, 4 * i)));
      f(Constant<0>{}, Constant<i + 4>{},
        bit_or(bits<4, 0, 15>(nibbles), fifth_bits(high, 4 * i + 16)));
    });
  }
  [[HEARTH_INLINE]] static Floats scale(const Rows& rows, std::size_t) { return rows.halves(2, 0); }
};

template <>
struct Tile<quant::Q5_1> : OneSubBlock<quant::Q5_1> {
  using Rows = TileRows<quant::Q5_1>;

  template <class F>
  [[HEARTH_INLINE]] static void visit(const Rows& rows, std::size_t group, F&& f) {
    Tile<quant::Q5_0>::visit({rows.tile, rows.lane}, group, f);
  }
  [[HEARTH_INLINE]] static Floats scale(const Rows& rows, std::size_t) { return rows.halves(2, 0); }
  [[HEARTH_INLINE]] static Floats offset(const Rows& rows, std::size_t) {
    return rows.halves(2, 1);
  }
};

template <>
struct Tile<quant::Q8_0> : OneSubBlock<quant::Q8_0> {
  using Rows = TileRows<quant::Q8_0>;
  static constexpr bool is_signed = true;

  template <class F>
  [[HEARTH_INLINE]] static void visit(const Rows& rows, std::size_t, F&& f) {
    unroll<8>([&](auto i) HEARTH_LAMBDA { f(Constant<0>{}, i, offset_signed(rows.codes(0, i))); });
  }
  [[HEARTH_INLINE]] static Floats scale(const Rows& rows, std::size_t) { return rows.halves(1, 0); }
};
