#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace hearth::backend::cpu {

/// Activations that integer products take at a time. A row's last step may hold fewer.
inline constexpr std::int64_t step_weights = 256;

/// The activation blocks that integer formats use (quant/integer_form.h).
inline constexpr std::array<int, 2> code_blocks{256, 32};

/// Steps that may be read beyond the last one, because kernels take rows in groups of up to 32.
inline constexpr std::int64_t step_slack = 31;

/// 256 activations of one row as int8 codes with what the products need beside them. Steps of one
/// place of k follow each other for all rows, [n_in / 256, rounded up][rows], so that the rows of a
/// micro-tile are at constant distances from one pointer.
struct alignas(64) ActivationStep {
  std::array<std::int8_t, 256> codes;
  std::array<float, 8> scales;           // per activation block: 8 of 32 values, or 1 of 256
  std::array<std::int16_t, 8> sums_32;   // of 32 codes
  std::array<std::int16_t, 16> sums_16;  // of 16 codes
  std::array<std::int32_t, 8> wide_sums_32;
};

/// Codes x[0...3] of a step, which are the `place`-th four of an aligned sixteen: instructions that
/// take four bytes out of a register can share one load of all sixteen.
template <std::size_t place>
struct FourActivations {
  const std::int8_t* x;

  constexpr operator const std::int8_t*() const { return x; }
  [[nodiscard]] constexpr const std::int8_t* sixteen() const { return x - 4 * place; }
};

}  // namespace hearth::backend::cpu
