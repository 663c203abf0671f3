#pragma once
/// Matrix products of types that are multiplied as floats: four partial sums by k mod 4 for every
/// (weight row, activation row), lanes being weight rows.

#include "backend/cpu/kernels/interleave.inl"
#include "backend/cpu/kernels/matmul_integer.inl"

/// F32, F16 and BF16 tiles: `width` rows of one element.
template <class Q>
[[HEARTH_INLINE]] inline Floats load_weights(const std::byte* tile, std::size_t lane) {
  if constexpr (std::is_same_v<Q, quant::F32>) {
    return load_floats(as_array<float>(tile) + lane);
  } else if constexpr (std::is_same_v<Q, quant::F16>) {
    return load_halves(tile + lane * sizeof(Half));
  } else {
    static_assert(std::is_same_v<Q, quant::BF16>);
    return as_floats(shift_left(load_unsigned_shorts(tile + lane * sizeof(BFloat16)), 16));
  }
}

/// n activation rows, from `row` on, with `width` rows of a panel of tiles.
template <class Q, std::size_t n>
[[HEARTH_INLINE]] inline std::array<Floats, n> dot_floats(const std::byte* panel, std::size_t lane,
                                                          const float* x, std::int64_t n_in) {
  static constexpr std::int64_t tile_bytes = Q::info.block_bytes * panel_rows;
  std::array<std::array<Floats, 4>, n> partial{};
  const auto add_element = [&](auto j, std::int64_t k) HEARTH_LAMBDA {
    const Floats weights = load_weights<Q>(panel + k * tile_bytes, lane);
    unroll<n>([&](auto r) HEARTH_LAMBDA {
      const float value = x[static_cast<std::int64_t>(r) * n_in + k];
      partial[r][j] = multiply_add(weights, same_floats(value), partial[r][j]);
    });
  };
  std::int64_t k = 0;
  for (; k + 4 <= n_in; k += 4) {
    unroll<4>([&](auto j) HEARTH_LAMBDA { add_element(j, k + static_cast<std::int64_t>(j)); });
  }
  unroll<3>([&](auto j) HEARTH_LAMBDA {
    if (k + static_cast<std::int64_t>(j) < n_in) {
      add_element(j, k + static_cast<std::int64_t>(j));
    }
  });
  std::array<Floats, n> sums;
  unroll<n>([&](auto r) HEARTH_LAMBDA {
    sums[r] = add(add(partial[r][0], partial[r][1]), add(partial[r][2], partial[r][3]));
  });
  return sums;
}

template <class Q, std::size_t n>
[[HEARTH_TARGET, gnu::noinline]] void multiply_floats(const MatmulTask& task,
                                                      const std::byte* panel, std::int64_t o,
                                                      std::int64_t row) {
  for (std::size_t lane = 0; lane < panel_rows; lane += width) {
    const auto dots = dot_floats<Q, n>(panel, lane, task.x.values + row * task.n_in, task.n_in);
    for (std::size_t r = 0; r < n; ++r) {
      put_outputs(dots[r], task, row + static_cast<std::int64_t>(r),
                  o + static_cast<std::int64_t>(lane));
    }
  }
}

/// Sixteen native rows, decoded, as F32 tiles [n_in, rounded up to a multiple of four][16 rows];
/// lanes beyond n_rows repeat the last row.
template <class Q>
[[HEARTH_TARGET, gnu::flatten]] void decode_panel(const std::byte* rows, std::int64_t row_bytes,
                                                  std::int64_t n_rows, std::int64_t n_in,
                                                  std::byte* panel) {
  constexpr std::int64_t run = std::max<std::int64_t>(Q::info.block_weights, 64);
  std::array<float, 4 * run> weights{};  // of four rows
  for (std::int64_t k = 0; k < n_in; k += run) {
    const auto n = static_cast<std::size_t>(std::min(run, n_in - k));
    for (std::int64_t lane = 0; lane < panel_rows; lane += 4) {
      std::array<const std::byte*, 4> from;
      for (std::int64_t r = 0; r < 4; ++r) {
        const std::byte* row = rows + std::min(lane + r, n_rows - 1) * row_bytes;
        const auto* blocks = as_array<typename Q::Block>(row) + k / Q::info.block_weights;
        float* to = weights.data() + r * run;
        quant::decode_blocks<Q>({blocks, n / static_cast<std::size_t>(Q::info.block_weights)},
                                {to, n});
        from[static_cast<std::size_t>(r)] =
            static_cast<const std::byte*>(static_cast<const void*>(to));
      }
      turn_four_rows(from, n, panel + (k * panel_rows + lane) * std::int64_t{sizeof(float)},
                     panel_rows * sizeof(float));
    }
  }
}

/// All activation rows with one panel of tiles. Types without tiles of their own share it.
template <class Tiles>
[[HEARTH_TARGET, gnu::flatten, gnu::noinline]] void multiply_float_panel(const MatmulTask& task,
                                                                         const std::byte* panel,
                                                                         std::int64_t o) {
  for_row_runs<direct_rows, 1>(0, task.n_rows, [&]<std::size_t n>(std::int64_t row) {
    multiply_floats<Tiles, n>(task, panel, o, row);
  });
}

/// Q's rows are tiles of Q or, in their native layout, decoded.
template <class Q>
[[HEARTH_TARGET]] void matmul_float(const MatmulTask& task) {
  for (std::int64_t o = 0; o < task.n_out; o += panel_rows) {
    const std::byte* rows = task.weights + o * task.weight_row_bytes;
    if constexpr (has_tiles<Q>) {
      if (task.is_tiled) {
        multiply_float_panel<Q>(task, rows, o);
        continue;
      }
    }
    decode_panel<Q>(rows, task.weight_row_bytes, std::min(panel_rows, task.n_out - o), task.n_in,
                    task.scratch);
    multiply_float_panel<quant::F32>(task, task.scratch, o);
  }
}
