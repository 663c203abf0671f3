#pragma once
/// Block formats seen as integers, for dot products without rounding.
///
/// Inside one *unit* (the weights that share a float scale):
///   weight[i] = scale * sub_scale[i / 16] * (zero + code[i])  +  offset * sub_offset[i / 16]
/// so that a dot product with int8 activations a[i] (one float scale `da` per activation block) is
///   isum = sum_i sub_scale[i/16] * (zero + code[i]) * a[i]         exact in int32
///   msum = sum_g sub_offset[g] * (sum of the 16 a[i] of group g)   exact in int32
///   acc  = fma(scale * da, float(isum), acc)
///   acc  = fma(offset * da, float(msum), acc)              only for formats with an offset term
/// with scale * da and offset * da rounded to f32 first, units in order of k. Every kernel of every
/// instruction set computes exactly this, so all agree bit for bit.

#include <array>
#include <cstdint>

namespace hearth::quant {

/// Largest block (in weights) that has an integer form.
inline constexpr int max_integer_block = 256;

/// What is fixed per format.
struct IntegerLayout {
  int unit;  // weights per float scale: 256, 32 or 16 (NVFP4)
  int sub;   // weights per sub_scale: 32, 16, or `unit` when there is none (sub_scale = 1)
  int activation_block;  // values that share an activation scale: 256 or 32
  bool has_offset;
  int code_zero = 0;  // 128 where codes are unsigned bytes, which are stored less 128
};

/// One block (up to 256 weights) in integer form. A format writes only the entries its block has,
/// and offsets only if it has an offset term; without one they stay zero.
struct IntegerBlock {
  alignas(64) std::array<std::int8_t, max_integer_block> codes;
  std::array<std::int16_t, max_integer_block / 16> sub_scales;     // 1 where the format has none
  std::array<std::int16_t, max_integer_block / 16> sub_offsets{};  // 1 where the format has none
  std::array<float, 4> scales;                                     // per unit
  std::array<float, 4> offsets{};                                  // per unit
};

}  // namespace hearth::quant
