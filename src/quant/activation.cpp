#include "quant/activation.h"

#include "base/assert.h"

namespace hearth::quant {
namespace {

template <int block>
void quantize_row(std::span<const float> x, ActivationRow row) {
  for (std::size_t i = 0; i < x.size() / block; ++i) {
    quantize_block<block>(&x[i * block], &row.codes[i * block], row.scales[i],
                          &row.sums[i * block / activation_sum_group]);
  }
}

}  // namespace

void quantize_activations(std::span<const float> x, int block, ActivationRow row) {
  HEARTH_ASSERT(block == 32 || block == 256);
  const auto block_size = static_cast<std::size_t>(block);
  HEARTH_ASSERT(x.size() % block_size == 0);
  HEARTH_ASSERT(row.codes.size() == x.size());
  HEARTH_ASSERT(row.scales.size() == x.size() / block_size);
  HEARTH_ASSERT(row.sums.size() == x.size() / activation_sum_group);
  if (block == 32) {
    quantize_row<32>(x, row);
  } else {
    quantize_row<256>(x, row);
  }
}

}  // namespace hearth::quant
