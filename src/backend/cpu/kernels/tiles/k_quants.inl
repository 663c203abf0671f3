#pragma once
/// Types of 256 weights with integer scales for sub-blocks of 16 or 32.

#include "backend/cpu/kernels/tiles/tile.inl"

/// The six-bit scales and mins of Q4_K and Q5_K (quant/types/k_scales.h): fields[1] is three words.
template <class Q>
struct KScales {
  using Rows = TileRows<Q>;
  static constexpr std::size_t n_slots = 2;
  static constexpr bool is_signed = false;
  static constexpr std::int32_t code_bias = 0;
  static constexpr std::size_t scales_field = tile_fields<Q>.size() - 2;

  static std::size_t sub_of(std::size_t group, std::size_t slot) { return 2 * group + slot; }
  [[HEARTH_INLINE]] static Floats scale(const Rows& rows, std::size_t) {
    return rows.halves(scales_field + 1, 0);
  }
  [[HEARTH_INLINE]] static Floats offset(const Rows& rows, std::size_t) {
    return negate(rows.halves(scales_field + 1, 1));
  }
  [[HEARTH_INLINE]] static Ints sub_scale(const Rows& rows, std::size_t sub) {
    return six_bits(rows, 0, sub);
  }
  [[HEARTH_INLINE]] static Ints sub_offset(const Rows& rows, std::size_t sub) {
    return six_bits(rows, 1, sub);
  }

 private:
  /// which: 0 for scales, 1 for mins.
  [[HEARTH_INLINE]] static Ints six_bits(const Rows& rows, std::size_t which, std::size_t sub) {
    const auto byte = 8 * static_cast<int>(sub % 4);
    const Ints word = rows.words(scales_field, which);
    if (sub < 4) {
      return bits_of(word, byte, 63);
    }
    const Ints low = bits_of(rows.words(scales_field, 2), byte + 4 * static_cast<int>(which), 15);
    return bit_or(low, shift_left(bits_of(word, byte + 6, 3), 4));
  }
};

template <>
struct Tile<quant::Q4_K> : KScales<quant::Q4_K> {
  /// Word i of 64 weights: quad i of two sub-blocks.
  template <class F>
  [[HEARTH_INLINE]] static void visit(const Rows& rows, std::size_t group, F&& f) {
    unroll<8>([&](auto i) HEARTH_LAMBDA {
      const Codes nibbles = rows.codes(0, 8 * group + i);
      f(Constant<0>{}, i, bits<0, 0, 15>(nibbles));
      f(Constant<1>{}, i, bits<4, 0, 15>(nibbles));
    });
  }
};

template <>
struct Tile<quant::Q5_K> : KScales<quant::Q5_K> {
  /// Nibbles as in Q4_K; those of the first group take turns with the high bits of all groups.
  template <class F>
  [[HEARTH_INLINE]] static void visit(const Rows& rows, std::size_t group, F&& f) {
    const std::size_t first = group == 0 ? 0 : 8 + 8 * group;
    const std::size_t step = group == 0 ? 2 : 1;
    unroll<8>([&](auto i) HEARTH_LAMBDA {
      const Codes nibbles = rows.codes(first + step * i);
      const Codes high = shift_bytes_right(rows.codes(2 * i + 1), 2 * static_cast<int>(group));
      f(Constant<0>{}, i, bit_or(bits<0, 0, 15>(nibbles), bits<0, 4, 1>(high)));
      f(Constant<1>{}, i, bit_or(bits<4, 0, 15>(nibbles), bits<1, 4, 1>(high)));
    });
  }
};

/// Q2_K, Q3_K and Q6_K: within 128 weights, word i has quad i of four runs of 32, two bits each. A
/// group is one half of those runs, i.e. four sub-blocks of 16.
struct FourRuns {
  static constexpr std::size_t n_slots = 4;
  static constexpr bool is_signed = false;
  static std::size_t sub_of(std::size_t group, std::size_t slot) {
    return 8 * (group / 2) + 2 * slot + group % 2;
  }
};

template <>
struct Tile<quant::Q2_K> : FourRuns {
  using Rows = TileRows<quant::Q2_K>;
  static constexpr std::int32_t code_bias = 0;

  template <class F>
  [[HEARTH_INLINE]] static void visit(const Rows& rows, std::size_t group, F&& f) {
    unroll<4>([&](auto i) HEARTH_LAMBDA {
      const Codes codes = rows.codes(0, 4 * group + i);
      unroll<4>([&](auto run) HEARTH_LAMBDA { f(run, i, bits<2 * run, 0, 3>(codes)); });
    });
  }
  [[HEARTH_INLINE]] static Floats scale(const Rows& rows, std::size_t) { return rows.halves(2, 0); }
  [[HEARTH_INLINE]] static Floats offset(const Rows& rows, std::size_t) {
    return negate(rows.halves(2, 1));
  }
  [[HEARTH_INLINE]] static Ints sub_scale(const Rows& rows, std::size_t sub) {
    return bit_and(load_unsigned_bytes(rows.at<1>(1, sub)), same_ints(15));
  }
  [[HEARTH_INLINE]] static Ints sub_offset(const Rows& rows, std::size_t sub) {
    return shift_right(load_unsigned_bytes(rows.at<1>(1, sub)), 4);
  }
};

template <>
struct Tile<quant::Q3_K> : FourRuns {
  using Rows = TileRows<quant::Q3_K>;
  static constexpr std::int32_t code_bias = 4;
  static constexpr std::size_t scales_field = tile_fields<quant::Q3_K>.size() - 2;

  /// Low bits of the first two groups take turns with the high bits of all groups.
  template <class F>
  [[HEARTH_INLINE]] static void visit(const Rows& rows, std::size_t group, F&& f) {
    const std::size_t first = group < 2 ? 8 * group : 8 + 4 * group;
    const std::size_t step = group < 2 ? 2 : 1;
    unroll<4>([&](auto i) HEARTH_LAMBDA {
      const Codes low = rows.codes(first + step * i);
      const Codes high = shift_bytes_right(rows.codes(8 * (group % 2) + 2 * i + 1),
                                           4 * static_cast<int>(group / 2));
      unroll<4>([&](auto run) HEARTH_LAMBDA {
        f(run, i, bit_or(bits<2 * run, 0, 3>(low), bits<run, 2, 1>(high)));
      });
    });
  }
  [[HEARTH_INLINE]] static Floats scale(const Rows& rows, std::size_t) {
    return rows.halves(scales_field + 1, 0);
  }
  /// Low nibbles in words 0 and 1, first the low ones of each byte; high two bits in word 2.
  [[HEARTH_INLINE]] static Ints sub_scale(const Rows& rows, std::size_t sub) {
    const auto byte = 8 * static_cast<int>(sub % 4);
    const auto quarter = static_cast<int>(sub / 4);
    const Ints low = bits_of(rows.words(scales_field, static_cast<std::size_t>(quarter % 2)),
                             byte + 4 * (quarter / 2), 15);
    const Ints high = bits_of(rows.words(scales_field, 2), byte + 2 * quarter, 3);
    return subtract(bit_or(low, shift_left(high, 4)), same_ints(32));
  }
};

template <>
struct Tile<quant::Q6_K> : FourRuns {
  using Rows = TileRows<quant::Q6_K>;
  static constexpr std::int32_t code_bias = 32;
  static constexpr std::size_t scales_field = tile_fields<quant::Q6_K>.size() - 2;

  /// Within 128 weights, low nibbles of words 0-7 and 8-15 are runs 0 and 1, high ones 2 and 3. One
  /// word of either and one of high bits take turns.
  template <class F>
  [[HEARTH_INLINE]] static void visit(const Rows& rows, std::size_t group, F&& f) {
    unroll<4>([&](auto i) HEARTH_LAMBDA {
      const Codes even = rows.codes(12 * group + 3 * i);
      const Codes odd = rows.codes(12 * group + 3 * i + 1);
      const Codes high = rows.codes(12 * group + 3 * i + 2);
      f(Constant<0>{}, i, bit_or(bits<0, 0, 15>(even), bits<0, 4, 3>(high)));
      f(Constant<1>{}, i, bit_or(bits<0, 0, 15>(odd), bits<2, 4, 3>(high)));
      f(Constant<2>{}, i, bit_or(bits<4, 0, 15>(even), bits<4, 4, 3>(high)));
      f(Constant<3>{}, i, bit_or(bits<4, 0, 15>(odd), bits<6, 4, 3>(high)));
    });
  }
  [[HEARTH_INLINE]] static Floats scale(const Rows& rows, std::size_t) {
    return rows.halves(scales_field + 1, 0);
  }
  [[HEARTH_INLINE]] static Ints sub_scale(const Rows& rows, std::size_t sub) {
    return load_signed_bytes(rows.at<1>(scales_field, sub));
  }
};
