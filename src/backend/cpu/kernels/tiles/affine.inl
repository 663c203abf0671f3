#pragma once
/// Affine groups: runs of 32 weights whose codes lie in planes, and one scale and offset.

#include "backend/cpu/kernels/tiles/small_blocks.inl"

/// Kernels of their own for all eighteen would double the time to compile a set. Published models
/// have BF16 scales, or 4 or 8 bits.
template <std::size_t n_bits, class Scale>
inline constexpr bool has_direct_kernel<quant::Affine<n_bits, Scale>> =
    std::is_same_v<Scale, BFloat16> || n_bits == 4 || n_bits == 8;

template <std::size_t n_bits, class Scale>
struct Tile<quant::Affine<n_bits, Scale>> : OneSubBlock<quant::Affine<n_bits, Scale>> {
  using Rows = TileRows<quant::Affine<n_bits, Scale>>;
  using Planes = quant::AffinePlanes<n_bits>;
  static constexpr bool is_signed = n_bits == 8;

  template <class F>
  [[HEARTH_INLINE]] static void visit(const Rows& rows, std::size_t group, F&& f) {
    unroll<Planes::low>([&](auto i) HEARTH_LAMBDA {
      const Codes word = rows.codes(0, group * n_bits + i);
      if constexpr (is_signed) {
        f(Constant<0>{}, i, offset_signed(word));
      } else {
        unroll<8 / Planes::low>([&](auto k) HEARTH_LAMBDA {
          constexpr Constant<i + Planes::low * k> quad;
          const Codes low = plane_bits<Planes::low, quad, 0>(word);
          f(Constant<0>{}, quad, with_high_bits<quad>(rows, group, low));
        });
      }
    });
  }
  [[HEARTH_INLINE]] static Floats scale(const Rows& rows, std::size_t) { return number(rows, 0); }
  [[HEARTH_INLINE]] static Floats offset(const Rows& rows, std::size_t) { return number(rows, 1); }

 private:
  /// The bits of a quad in its word of a plane of w bits, moved up to bit `to`.
  template <std::size_t w, std::size_t quad, int to>
  [[HEARTH_INLINE]] static Codes plane_bits(Codes word) {
    return bits<static_cast<int>(quad / w * w), to, (1 << w) - 1>(word);
  }
  template <std::size_t quad>
  [[HEARTH_INLINE]] static Codes with_high_bits(const Rows& rows, std::size_t group, Codes low) {
    constexpr std::size_t w = Planes::high;
    if constexpr (w == 0) {
      return low;
    } else {
      const Codes word = rows.codes(0, group * n_bits + Planes::low + quad % w);
      return bit_or(low, plane_bits<w, quad, static_cast<int>(Planes::low)>(word));
    }
  }
  [[HEARTH_INLINE]] static Floats number(const Rows& rows, std::size_t which) {
    if constexpr (std::is_same_v<Scale, float>) {
      return load_floats(as_array<float>(rows.template at<4>(1, which)));
    } else if constexpr (std::is_same_v<Scale, Half>) {
      return rows.halves(1, which);
    } else {
      return rows.bfloats(1, which);
    }
  }
};
