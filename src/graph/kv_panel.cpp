#include "graph/kv_panel.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "quant/activation.h"

namespace hearth::graph {

void quantize_group(const float* x, const quant::Q8_0& /*type*/, QuantizedGroup& out) {
  float scale = 0;
  std::array<std::int16_t, 2> sums;
  quant::quantize_block<32>(x, out.codes.data(), scale, sums.data());
  out.scale = to_half(scale);
}

/// The element of largest magnitude becomes code -8, whose range is one larger than that of 7.
void quantize_group(const float* x, const quant::Q4_0& /*type*/, QuantizedGroup& out) {
  const auto larger = [](float a, float b) { return std::abs(a) < std::abs(b); };
  const float extreme = *std::max_element(x, x + out.codes.size(), larger);
  const bool is_finite =
      std::all_of(x, x + out.codes.size(), [](float each) { return std::isfinite(each); });
  out.codes.fill(0);
  if (!is_finite || std::abs(extreme) < quant::smallest_activation) {
    out.scale = to_half(is_finite ? 0.0f : std::numeric_limits<float>::quiet_NaN());
    return;
  }
  out.scale = to_half(extreme / -8.0f);
  const float inverse = -8.0f / extreme;
  for (std::size_t i = 0; i < out.codes.size(); ++i) {
    const float rounded = (x[i] * inverse + quant::rounding_shift) - quant::rounding_shift;
    out.codes[i] = static_cast<std::int8_t>(std::min(rounded, 7.0f));
  }
}

}  // namespace hearth::graph
