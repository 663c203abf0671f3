#pragma once
/// Activations as int8, the other operand of the integer dot products of quant/integer_form.h.

#include <cstdint>
#include <span>

namespace hearth::quant {

/// Values whose sum is kept beside the codes, for formats with an offset term.
inline constexpr int activation_sum_group = 16;

/// Magnitudes below this count as zero: 127 / max|x| has to stay finite.
inline constexpr float smallest_activation = 0x1p-120f;

/// One row of quantized activations, written into storage the caller provides.
struct ActivationRow {
  std::span<std::int8_t> codes;  // [n], in -127...127
  std::span<float> scales;       // [n / block]
  std::span<std::int16_t> sums;  // [n / 16], sums of 16 codes
};

/// Quantizes x [n] in blocks of `block` values (256 or 32; n is a multiple of it):
/// scale = max|x| / 127, code = x * (127 / max|x|) rounded to nearest even and clamped to +-127.
/// A block below smallest_activation throughout has scale 0 and codes 0. A block with a NaN or an
/// infinity has scale NaN and codes 0, so that the fault reaches the logits instead of turning into
/// a plausible number.
void quantize_activations(std::span<const float> x, int block, ActivationRow row);

}  // namespace hearth::quant
