#pragma once
/// Recurrent layers: the delta rule with lanes that are value dimensions, so that no sum goes
/// across lanes, and the causal convolution with lanes that are channels.

#include "backend/cpu/kernels/tiles/tile.inl"

[[HEARTH_TARGET, gnu::flatten]] void unit_vector(const float* x, std::int64_t n, float scale,
                                                 float* y) {
  graph::unit_vector(x, n, scale, y);
}

/// Vectors of a strip.
inline constexpr std::size_t strip_vectors = graph::state_strip / width;
/// Four partial sums by key dimension mod 4.
using StripSums = std::array<std::array<Floats, 4>, strip_vectors>;

[[HEARTH_INLINE]] inline Floats total(const std::array<Floats, 4>& partial) {
  return add(add(partial[0], partial[1]), add(partial[2], partial[3]));
}

/// Two passes over the strip, which stays in the first-level cache: what the decayed memory holds
/// for k, then the write and the read.
[[HEARTH_TARGET]] void delta_strip(const DeltaTask& task) {
  const Floats decay = same_floats(task.decay);
  StripSums found{};
  for (std::int64_t i = 0; i < task.key_dim; i += 4) {
    unroll<4>([&](auto j) HEARTH_LAMBDA {
      const std::int64_t at = i + static_cast<std::int64_t>(j);
      const float* row = task.memory + at * graph::state_strip;
      const Floats k = same_floats(task.k[at]);
      unroll<strip_vectors>([&](auto v) HEARTH_LAMBDA {
        const Floats kept = multiply(decay, load_floats(row + v * width));
        found[v][j] = multiply_add(kept, k, found[v][j]);
      });
    });
  }
  std::array<Floats, strip_vectors> delta;
  unroll<strip_vectors>([&](auto v) HEARTH_LAMBDA {
    const Floats error = add(load_floats(task.v + v * width), negate(total(found[v])));
    delta[v] = multiply(same_floats(task.beta), error);
  });
  StripSums read{};
  for (std::int64_t i = 0; i < task.key_dim; i += 4) {
    unroll<4>([&](auto j) HEARTH_LAMBDA {
      const std::int64_t at = i + static_cast<std::int64_t>(j);
      float* row = task.memory + at * graph::state_strip;
      const Floats k = same_floats(task.k[at]);
      const Floats q = same_floats(task.q[at]);
      unroll<strip_vectors>([&](auto v) HEARTH_LAMBDA {
        const Floats kept = multiply(decay, load_floats(row + v * width));
        const Floats written = multiply_add(k, delta[v], kept);
        store_floats(written, row + v * width);
        read[v][j] = multiply_add(written, q, read[v][j]);
      });
    });
  }
  unroll<strip_vectors>([&](auto v)
                            HEARTH_LAMBDA { store_floats(total(read[v]), task.out + v * width); });
}

[[HEARTH_TARGET, gnu::flatten]] void conv_channels(const ConvTask& task) {
  const std::int64_t n = task.n_channels;
  const std::int64_t ring_rows = task.taps - 1;
  std::array<float, conv_block> sums{};
  const auto add_tap = [&](std::int64_t tap, const float* values) {
    const float* weights = task.weights + tap * conv_block;
    for (std::int64_t i = 0; i < n; ++i) {
      float& sum = sums[static_cast<std::size_t>(i)];
      sum = std::fma(weights[i], values[i], sum);
    }
  };
  for (std::int64_t tap = 0; tap < ring_rows; ++tap) {
    add_tap(tap, task.ring + (task.position + tap) % ring_rows * task.ring_stride);
  }
  add_tap(ring_rows, task.x);
  std::copy_n(task.x, n, task.ring + task.position % ring_rows * task.ring_stride);
  for (std::int64_t i = 0; i < n; ++i) {
    task.out[i] = canonical_silu(sums[static_cast<std::size_t>(i)]);
  }
}
