#pragma once
/// Scores to softmax weights, lanes being keys.

#include "backend/cpu/kernels/tiles/tile.inl"

/// canonical_exp of base/math.h.
[[HEARTH_INLINE]] inline Floats exp_floats(const Floats& x) {
  const Floats clamped = smaller(same_floats(88.7f), larger(same_floats(-87.3f), x));
  const Floats magic = same_floats(0x1.8p+23f);
  const Floats shifted = multiply_add(clamped, same_floats(0x1.715476p+0f), magic);
  const Floats n = add(shifted, negate(magic));
  const Floats r = multiply_add(n, same_floats(-0x1.7f7d1cp-20f),
                                multiply_add(n, same_floats(-0x1.62e400p-1f), clamped));
  Floats q = same_floats(0x1.6a23d0p-10f);
  q = multiply_add(q, r, same_floats(0x1.123a20p-7f));
  q = multiply_add(q, r, same_floats(0x1.5558f2p-5f));
  q = multiply_add(q, r, same_floats(0x1.555492p-3f));
  q = multiply_add(q, r, same_floats(0x1.fffffcp-2f));
  const Floats one = same_floats(1.0f);
  const Floats power = multiply_add(multiply_add(q, r, one), r, one);
  const Ints exponent = shift_left(as_ints(shifted), 23);
  const Floats scaled = as_floats(add(as_ints(power), exponent));
  return add(scaled, add(clamped, negate(clamped)));  // zero, or NaN where x was
}

/// In place, dots [begin, end) to weights e^(scale dot - maximum), whose sum is in lanes of 16.
/// begin is below 16; lanes before it, and behind end to the next multiple of 16, become 0.
[[HEARTH_TARGET]] inline void weigh(float* scores, std::int64_t begin, std::int64_t end,
                                    float scale, float* maximum, float* sum) {
  static constexpr auto step = static_cast<std::int64_t>(width);
  const std::int64_t padded = round_up(end, graph::kv_block_tokens);
  constexpr float lowest = -std::numeric_limits<float>::infinity();
  for (std::int64_t i = 0; i < padded; i += step) {
    store_floats(multiply(same_floats(scale), load_floats(scores + i)), scores + i);
  }
  std::fill_n(scores, begin, lowest);
  std::fill_n(scores + end, padded - end, lowest);
  Floats largest = same_floats(lowest);
  for (std::int64_t i = 0; i < padded; i += step) {
    largest = larger(load_floats(scores + i), largest);
  }
  std::array<float, width> lanes;
  store_floats(largest, lanes.data());
  *maximum = *std::max_element(lanes.begin(), lanes.end());

  const Floats shift = same_floats(-*maximum);
  for (std::int64_t i = 0; i < padded; i += step) {
    store_floats(exp_floats(add(load_floats(scores + i), shift)), scores + i);
  }
  std::fill_n(scores, begin, 0.0f);
  std::fill_n(scores + end, padded - end, 0.0f);

  std::array<Floats, n_lanes / width> sums{};
  for (std::int64_t i = 0; i < padded; i += static_cast<std::int64_t>(n_lanes)) {
    unroll<n_lanes / width>([&](auto part) HEARTH_LAMBDA {
      const std::int64_t at = i + static_cast<std::int64_t>(part * width);
      sums[part] = add(sums[part], load_floats(scores + at));
    });
  }
  Lanes partial;
  for (std::size_t part = 0; part < sums.size(); ++part) {
    store_floats(sums[part], partial.data() + part * width);
  }
  *sum = sum_lanes(partial);
}
