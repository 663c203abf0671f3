#pragma once
/// Recurrent layers: the delta rule with lanes that are value dimensions, so that no sum goes
/// across lanes, and the causal convolution with lanes that are channels.

#include "backend/cpu/kernels/tiles/tile.inl"

[[HEARTH_TARGET, gnu::flatten]] void unit_vector(const float* x, std::int64_t n, float scale,
                                                 float* y) {
  graph::unit_vector(x, n, scale, y);
}

/// Four partial sums by key dimension mod 4, of one vector of columns.
using KeySums = std::array<Floats, 4>;

[[HEARTH_INLINE]] inline Floats total(const KeySums& partial) {
  return add(add(partial[0], partial[1]), add(partial[2], partial[3]));
}

/// Calls f(key dimension, its place mod 4) for every row of the memory.
template <class F>
[[HEARTH_INLINE]] inline void for_keys(std::int64_t key_dim, F&& f) {
  for (std::int64_t i = 0; i < key_dim; i += 4) {
    unroll<4>([&](auto j) HEARTH_LAMBDA { f(i + static_cast<std::int64_t>(j), j); });
  }
}

/// One vector of columns, whose memory stays in the first-level cache. A pass over it writes a
/// token, reads it, decays the memory for the next token and looks for that one's key.
[[HEARTH_INLINE]] inline void delta_columns(const DeltaTask& task, std::size_t column) {
  float* memory = task.memory + column;
  const Floats first_decay = same_floats(task.tokens[0].decay);
  KeySums found{};
  for_keys(task.key_dim, [&](std::int64_t at, auto j) HEARTH_LAMBDA {
    float* row = memory + at * graph::state_strip;
    const Floats kept = multiply(first_decay, load_floats(row));
    store_floats(kept, row);
    found[j] = multiply_add(kept, same_floats(task.tokens[0].k[at]), found[j]);
  });
  for (std::int64_t i = 0; i < task.n_tokens; ++i) {
    const DeltaToken& token = task.tokens[i];
    const Floats error = add(load_floats(token.v + column), negate(total(found)));
    const Floats delta = multiply(same_floats(token.beta), error);
    KeySums read{};
    if (i + 1 == task.n_tokens) {
      for_keys(task.key_dim, [&](std::int64_t at, auto j) HEARTH_LAMBDA {
        float* row = memory + at * graph::state_strip;
        const Floats written = multiply_add(same_floats(token.k[at]), delta, load_floats(row));
        store_floats(written, row);
        read[j] = multiply_add(written, same_floats(token.q[at]), read[j]);
      });
    } else {
      const DeltaToken& next = task.tokens[i + 1];
      const Floats decay = same_floats(next.decay);
      found = {};
      for_keys(task.key_dim, [&](std::int64_t at, auto j) HEARTH_LAMBDA {
        float* row = memory + at * graph::state_strip;
        const Floats written = multiply_add(same_floats(token.k[at]), delta, load_floats(row));
        read[j] = multiply_add(written, same_floats(token.q[at]), read[j]);
        const Floats kept = multiply(decay, written);
        store_floats(kept, row);
        found[j] = multiply_add(kept, same_floats(next.k[at]), found[j]);
      });
    }
    store_floats(total(read), token.out + column);
  }
}

[[HEARTH_TARGET]] void delta_strip(const DeltaTask& task) {
  for (std::size_t column = 0; column < graph::state_strip; column += width) {
    delta_columns(task, column);
  }
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
