#pragma once
/// The inner loop of attention, once for scores and once for weighted values: C += A B, where a
/// strip of B, two vectors wide, meets several rows of A. Every element of C is one chain of fused
/// multiply-adds in ascending step.

#include "backend/cpu/kernels/tiles/tile.inl"

inline constexpr auto strip_lanes = static_cast<std::int64_t>(2 * width);

struct StripProduct {
  const float* a;  // [rows, a_stride], by step
  std::int64_t a_stride;
  const std::byte* const* panels;  // B in pieces of panel_steps steps
  std::int64_t panel_steps;
  std::int64_t step_bytes;    // in a panel, from one step to the next
  std::int64_t first_bytes;   // from the start of a step to the first vector
  std::int64_t second_bytes;  // and on to the second
  std::int64_t begin;         // steps [begin, end)
  std::int64_t end;
  float* c;  // [rows, c_stride]
  std::int64_t c_stride;
};

/// What B is stored as.
struct Singles {
  static constexpr std::int64_t bytes = sizeof(float);
  [[HEARTH_INLINE]] static Floats load(const std::byte* x) {
    return load_floats(as_array<float>(x));
  }
};
struct Halves {
  static constexpr std::int64_t bytes = sizeof(Half);
  [[HEARTH_INLINE]] static Floats load(const std::byte* x) { return load_halves(x); }
};

template <class Source, std::size_t n>
[[HEARTH_TARGET, gnu::noinline]] void multiply_strip(const StripProduct& p, std::int64_t row) {
  const float* a = p.a + row * p.a_stride;
  float* c = p.c + row * p.c_stride;
  std::array<std::array<Floats, 2>, n> sums;
  unroll<n>([&](auto r) HEARTH_LAMBDA {
    const float* from = c + static_cast<std::int64_t>(r) * p.c_stride;
    sums[r] = {load_floats(from), load_floats(from + width)};
  });
  std::int64_t panel = p.begin / p.panel_steps;
  for (std::int64_t step = p.begin; step < p.end; ++panel) {
    const std::int64_t start = panel * p.panel_steps;
    const std::int64_t stop = std::min(p.end, start + p.panel_steps);
    const std::byte* b = p.panels[panel] + (step - start) * p.step_bytes + p.first_bytes;
    for (; step < stop; ++step, b += p.step_bytes) {
      const Floats first = Source::load(b);
      const Floats second = Source::load(b + p.second_bytes);
      unroll<n>([&](auto r) HEARTH_LAMBDA {
        const Floats value = same_floats(a[static_cast<std::int64_t>(r) * p.a_stride + step]);
        sums[r][0] = multiply_add(value, first, sums[r][0]);
        sums[r][1] = multiply_add(value, second, sums[r][1]);
      });
    }
  }
  unroll<n>([&](auto r) HEARTH_LAMBDA {
    float* to = c + static_cast<std::int64_t>(r) * p.c_stride;
    store_floats(sums[r][0], to);
    store_floats(sums[r][1], to + width);
  });
}

template <class Source>
[[HEARTH_TARGET]] void multiply_strip_rows(const StripProduct& p, std::int64_t n_rows) {
  static constexpr auto most = static_cast<std::int64_t>(block_rows);
  std::int64_t row = 0;
  for (; row + most <= n_rows; row += most) {
    multiply_strip<Source, block_rows>(p, row);
  }
  if (row + 4 <= n_rows) {
    multiply_strip<Source, 4>(p, row);
    row += 4;
  }
  switch (n_rows - row) {
    case 1:
      multiply_strip<Source, 1>(p, row);
      break;
    case 2:
      multiply_strip<Source, 2>(p, row);
      break;
    case 3:
      multiply_strip<Source, 3>(p, row);
      break;
    default:
      break;
  }
}
