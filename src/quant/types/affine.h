#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "base/half.h"
#include "quant/quant_type.h"

namespace hearth::quant {

/// Weights whose codes share planes.
inline constexpr std::size_t affine_run = 32;

/// The codes of 32 weights as one or two *planes*, low bits first: 2 bits = 2, 3 = 2 + 1, 4 = 4,
/// 5 = 4 + 1, 6 = 4 + 2, 8 = 8. A plane of w bits is w words. Bits w * k and up of its byte i
/// belong to code 4 * w * k + i, so that four consecutive codes have the same bits of one word,
/// which is what kernels take at a time.
template <std::size_t n_bits>
struct AffinePlanes {
  static constexpr std::size_t low = n_bits == 8 ? 8 : n_bits >= 4 ? 4 : 2;
  static constexpr std::size_t high = n_bits - low;  // 0 for none
  static constexpr std::size_t n_bytes = 4 * n_bits;

  /// Where plane `w` bits wide keeps code i: the byte, and the lowest bit.
  static constexpr std::size_t byte_of(std::size_t w, std::size_t i) { return i % (4 * w); }
  static constexpr std::size_t bit_of(std::size_t w, std::size_t i) { return i / (4 * w) * w; }

  /// Writes the codes of a run into planes that are zero.
  [[gnu::always_inline]] static void put(const std::uint8_t* codes, std::uint8_t* planes) {
    for (std::size_t i = 0; i < affine_run; ++i) {
      const int code = codes[i];
      planes[byte_of(low, i)] |=
          static_cast<std::uint8_t>((code & ((1 << low) - 1)) << bit_of(low, i));
      if constexpr (high != 0) {
        planes[4 * low + byte_of(high, i)] |=
            static_cast<std::uint8_t>(code >> low << bit_of(high, i));
      }
    }
  }
  /// Code i of a run.
  [[gnu::always_inline]] static int get(const std::uint8_t* planes, std::size_t i) {
    int code = planes[byte_of(low, i)] >> bit_of(low, i) & ((1 << low) - 1);
    if constexpr (high != 0) {
      const int rest = planes[4 * low + byte_of(high, i)] >> bit_of(high, i);
      code |= (rest & ((1 << high) - 1)) << low;
    }
    return code;
  }
};

/// By type of the scales (F32, F16, BF16), then by bits, ascending by number. The numbers are none
/// of GGUF's, nor of its forks.
inline constexpr int first_affine_number = 160;
inline constexpr std::array<std::string_view, 18> affine_names{
    "AFFINE2_F32",  "AFFINE3_F32",  "AFFINE4_F32",  "AFFINE5_F32",  "AFFINE6_F32",  "AFFINE8_F32",
    "AFFINE2_F16",  "AFFINE3_F16",  "AFFINE4_F16",  "AFFINE5_F16",  "AFFINE6_F16",  "AFFINE8_F16",
    "AFFINE2_BF16", "AFFINE3_BF16", "AFFINE4_BF16", "AFFINE5_BF16", "AFFINE6_BF16", "AFFINE8_BF16"};

template <class Scale>
inline constexpr DType affine_scale_type = std::is_same_v<Scale, float>  ? DType::f32
                                           : std::is_same_v<Scale, Half> ? DType::f16
                                                                         : DType::bf16;

/// Position of a type in affine_names.
[[nodiscard]] constexpr std::size_t affine_index(std::size_t n_bits, DType scale_type) {
  const std::size_t by_scale = scale_type == DType::f32 ? 0 : scale_type == DType::f16 ? 6 : 12;
  return by_scale + (n_bits == 8 ? 5 : n_bits - 2);
}

/// Affine groups as MLX has them: weight = scale * q + offset, with codes q of n_bits, unsigned.
/// MLX stores codes, scales and offsets ("biases") in a tensor each; these blocks are made of them
/// while a model is opened (quant/affine.h), and are in no file.
/// A block has 64 weights, or 32 with F32 scales; a larger group is several blocks that repeat its
/// numbers. Codes of 8 bits are stored as q - 128, because kernels multiply signed bytes.
/// Decoding has the bits of mlx.core.dequantize with float32 scales and biases. Source:
/// docs/formats/mlx.md.
template <std::size_t n_bits, class ScaleType>
struct Affine {
  using Scale = ScaleType;
  using Planes = AffinePlanes<n_bits>;
  static constexpr std::size_t bits = n_bits;
  static constexpr DType scale_type = affine_scale_type<Scale>;
  static constexpr std::size_t n_weights = std::is_same_v<Scale, float> ? 32 : 64;
  static constexpr std::size_t n_runs = n_weights / affine_run;

  struct Block {
    std::uint8_t planes[n_runs][Planes::n_bytes];
    Scale scale;
    Scale offset;
  };

  static constexpr QuantInfo info{
      .name = affine_names[affine_index(n_bits, scale_type)],
      .dtype = static_cast<DType>(first_affine_number + affine_index(n_bits, scale_type)),
      .block_weights = n_weights,
      .block_bytes = sizeof(Block),
      .is_in_files = false};
  static constexpr IntegerLayout integers{.unit = 32,
                                          .sub = 32,
                                          .activation_block = 32,
                                          .has_offset = true,
                                          .code_zero = n_bits == 8 ? 128 : 0};

  [[gnu::always_inline]] static void to_integers(const Block& block, IntegerBlock& out) {
    for (std::size_t run = 0; run < n_runs; ++run) {
      out.scales[run] = as_float(block.scale);
      out.offsets[run] = as_float(block.offset);
      out.sub_scales[2 * run] = out.sub_scales[2 * run + 1] = 1;
      out.sub_offsets[2 * run] = out.sub_offsets[2 * run + 1] = 1;
      for (std::size_t i = 0; i < affine_run; ++i) {
        out.codes[affine_run * run + i] =
            static_cast<std::int8_t>(Planes::get(block.planes[run], i));
      }
    }
  }

 private:
  static float as_float(Scale x) {
    if constexpr (std::is_same_v<Scale, float>) {
      return x;
    } else {
      return to_float(x);
    }
  }
};

}  // namespace hearth::quant
