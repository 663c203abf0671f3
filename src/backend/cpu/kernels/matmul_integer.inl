#pragma once
/// Matrix products of types with an integer form. Lanes are weight rows: an activation is the same
/// for all of them, no sum ever goes across lanes, and every (weight row, activation row) adds up
/// in the canonical order of quant/integer_form.h.
///
/// A few activation rows meet each tile while its codes are in registers. For many, the tiles of
/// one step are unpacked into thread scratch, and stay in the first-level cache while all
/// activation rows pass.

#include "backend/cpu/kernels/interleave.inl"
#include "backend/cpu/kernels/tiles/unpacked.inl"

/// Sum over the sub-blocks of a tile: their 16-bit numbers, in pairs, times the sums of their
/// activations.
template <TileShape shape, class PairAt>
[[HEARTH_INLINE]] inline Ints dot_sums(PairAt&& pair_at, const ActivationStep& step) {
  static_assert(shape.sub == 32 || shape.sub == 16);
  const std::int16_t* sums = shape.sub == 32 ? step.sums_32.data() : step.sums_16.data();
  Ints total{};
  unroll<shape.n_subs() / 2>(
      [&](auto i) HEARTH_LAMBDA { total = dot_pairs(pair_at(i), sums + 2 * i, total); });
  return total;
}

/// Sum of the activations that meet the unit at element k of the step, in every lane.
template <TileShape shape>
[[HEARTH_INLINE]] inline Ints unit_sum(const ActivationStep& step, std::size_t k) {
  static_assert(shape.unit == 32 || shape.unit == 16);
  if constexpr (shape.unit == 32) {
    return same_ints(step.wide_sums_32[k / 32]);
  } else {
    return same_ints(step.sums_16[k / 16]);
  }
}

/// The sum of a unit as if its codes had not been made unsigned.
template <class T>
[[HEARTH_INLINE]] inline Ints remove_bias(const typename T::Rows& rows, const ActivationStep& step,
                                          std::size_t k, Ints isum) {
  if constexpr (!T::shape.has_bias) {
    return isum;
  } else if constexpr (T::shape.has_subs()) {
    static_assert(!T::shape.is_bias_negative);
    const Ints sum = dot_sums<T::shape>(
        [&](std::size_t i) HEARTH_LAMBDA { return T::bias_pair(rows, i); }, step);
    return subtract(isum, T::times_bias(rows, sum));
  } else {
    const Ints excess = T::times_bias(rows, unit_sum<T::shape>(step, k));
    return T::shape.is_bias_negative ? add(isum, excess) : subtract(isum, excess);
  }
}

/// Adds a unit's terms to the canonical sum of one activation row.
template <class T>
[[HEARTH_INLINE]] inline Floats add_unit(const typename T::Rows& rows, const ActivationStep& step,
                                         std::size_t unit, std::size_t k, Ints isum, Floats acc) {
  const Floats da = same_floats(step.scales[k / T::shape.activation_block]);
  const Ints exact = remove_bias<T>(rows, step, k, isum);
  acc = multiply_add(multiply(T::scale(rows, unit), da), to_floats(exact), acc);
  if constexpr (T::shape.has_offset) {
    Ints msum{};
    if constexpr (T::shape.has_subs()) {
      msum = dot_sums<T::shape>(
          [&](std::size_t i) HEARTH_LAMBDA { return T::offset_pair(rows, i); }, step);
    } else {
      msum = unit_sum<T::shape>(step, k);
    }
    acc = multiply_add(multiply(T::offset(rows, unit), da), to_floats(msum), acc);
  }
  return acc;
}

/// One tile, Packed or Unpacked, with n activation rows: steps[r] of row r, from element `first`
/// of the step on.
template <class T, std::size_t n>
[[HEARTH_INLINE]] inline void add_tile(const typename T::Rows& rows, const ActivationStep* steps,
                                       std::size_t first, std::array<Floats, n>& acc) {
  static constexpr TileShape shape = T::shape;
  static constexpr std::size_t groups_per_unit = shape.unit / (shape.sub * T::n_slots);
  repeat<shape.n_units()>([&](std::size_t unit) HEARTH_LAMBDA {
    std::array<Ints, n> isum{};
    repeat<groups_per_unit>([&](std::size_t i) HEARTH_LAMBDA {
      const std::size_t group = unit * groups_per_unit + i;
      std::array<std::array<Ints, n>, T::n_slots> sums{};
      T::visit(rows, group, [&](auto slot, auto quad, Codes codes) HEARTH_LAMBDA {
        using Four = FourActivations<quad % 4>;
        const std::size_t k = first + T::sub_of(group, slot) * shape.sub + 4 * quad;
        unroll<n>([&](auto r) HEARTH_LAMBDA {
          const Four x{steps[r].codes.data() + k};
          auto& sum = sums[slot][r];
          sum = shape.is_signed ? dot_signed(codes, x, sum) : dot(codes, x, sum);
        });
      });
      unroll<T::n_slots>([&](auto slot) HEARTH_LAMBDA {
        if constexpr (shape.has_subs()) {
          const Ints scale = T::sub_scale(rows, T::sub_of(group, slot));
          unroll<n>([&](auto r)
                        HEARTH_LAMBDA { isum[r] = add(isum[r], multiply(sums[slot][r], scale)); });
        } else {
          isum = sums[slot];
        }
      });
    });
    unroll<n>([&](auto r) HEARTH_LAMBDA {
      acc[r] = add_unit<T>(rows, steps[r], unit, first + unit * shape.unit, isum[r], acc[r]);
    });
  });
}

/// Blocks of one row that a step spans.
template <class Q>
inline constexpr std::int64_t blocks_per_step = step_weights / Q::info.block_weights;

/// The panel of tiles [n_in / block] that begins at weight row o. Native rows are interleaved
/// first, into the beginning of the scratch.
template <class Q>
[[HEARTH_TARGET]] inline const std::byte* panel_tiles(const MatmulTask& task, std::int64_t o) {
  const std::byte* rows = task.weights + o * task.weight_row_bytes;
  if (task.is_tiled) {
    return rows;
  }
  interleave_panel<Q>(rows, task.weight_row_bytes, std::min(panel_rows, task.n_out - o), task.n_in,
                      task.scratch);
  return task.scratch;
}

/// The scratch behind that panel.
[[nodiscard]] inline std::byte* after_panel(const MatmulTask& task) {
  return task.scratch + native_panel_bytes(task.weight_row_bytes);
}

/// Stores the dots of `width` weight rows, from row o on, with one activation row; only those below
/// n_out.
[[HEARTH_INLINE]] inline void put_outputs(Floats dots, const MatmulTask& task, std::int64_t row,
                                          std::int64_t o) {
  float* out = task.out + row * task.out_stride + o;
  if (o + std::int64_t{width} <= task.n_out) {
    store_floats(dots, out);
  } else if (o < task.n_out) {
    std::array<float, width> all;
    store_floats(dots, all.data());
    std::copy_n(all.begin(), task.n_out - o, out);
  }
}

/// How far ahead of its use a tile is asked for, into the second-level cache: beside this much
/// arithmetic, what processors ask for by themselves comes too late.
inline constexpr std::int64_t prefetch_bytes = 6144;

template <class Q>
[[HEARTH_INLINE]] inline void prefetch_tile(const std::byte* tile) {
  constexpr std::int64_t cache_line = 64;
  for (std::int64_t at = 0; at < Q::info.block_bytes * panel_rows; at += cache_line) {
    __builtin_prefetch(tile + at, 0, 2);
  }
}

/// n activation rows with a panel whose codes are unpacked on the way.
template <class Q, std::size_t n>
[[HEARTH_TARGET, gnu::noinline]] void multiply_direct(const MatmulTask& task,
                                                      const std::byte* panel, std::int64_t o,
                                                      std::int64_t row) {
  static constexpr std::int64_t tile_bytes = Q::info.block_bytes * panel_rows;
  const std::int64_t n_blocks = task.n_in / Q::info.block_weights;
  for (std::size_t lane = 0; lane < panel_rows; lane += width) {
    std::array<Floats, n> acc{};
    const ActivationStep* steps = task.x.steps + row;
    for (std::int64_t first = 0; first < n_blocks; first += blocks_per_step<Q>) {
      const std::int64_t end = std::min(first + blocks_per_step<Q>, n_blocks);
      for (std::int64_t block = first; block < end; ++block) {
        prefetch_tile<Q>(panel + block * tile_bytes + prefetch_bytes);
        add_tile<Packed<Q>>({panel + block * tile_bytes, lane}, steps,
                            static_cast<std::size_t>((block - first) * Q::info.block_weights), acc);
      }
      steps += task.n_rows;
    }
    for (std::size_t r = 0; r < n; ++r) {
      put_outputs(acc[r], task, row + static_cast<std::int64_t>(r),
                  o + static_cast<std::int64_t>(lane));
    }
  }
}

/// n activation rows with the unpacked tiles of one step. acc [n][16 weight rows].
template <TileShape shape, std::size_t n>
[[HEARTH_TARGET, gnu::noinline]] void multiply_unpacked(const UnpackedTile<shape>* tiles,
                                                        std::int64_t n_tiles,
                                                        const ActivationStep* steps, float* acc) {
  for (std::size_t lane = 0; lane < panel_rows; lane += width) {
    std::array<Floats, n> sums;
    unroll<n>([&](auto r) HEARTH_LAMBDA { sums[r] = load_floats(acc + r * panel_rows + lane); });
    for (std::int64_t tile = 0; tile < n_tiles; ++tile) {
      add_tile<Unpacked<shape>>({tiles + tile, lane}, steps,
                                static_cast<std::size_t>(tile) * shape.block_weights, sums);
    }
    unroll<n>([&](auto r) HEARTH_LAMBDA { store_floats(sums[r], acc + r * panel_rows + lane); });
  }
}

/// Calls f.operator()<n>(row) for runs of n rows that cover [0, n_rows), n as listed while they
/// fit.
template <std::size_t n, std::size_t... smaller, class F>
[[HEARTH_INLINE]] inline void for_row_runs(std::int64_t first, std::int64_t n_rows, F&& f) {
  std::int64_t row = first;
  for (; row + std::int64_t{n} <= n_rows; row += n) {
    f.template operator()<n>(row);
  }
  if constexpr (sizeof...(smaller) > 0) {
    for_row_runs<smaller...>(row, n_rows, f);
  }
}

template <class Q>
[[HEARTH_TARGET]] void multiply_panel_unpacked(const MatmulTask& task, const std::byte* panel,
                                               std::int64_t o, std::byte* scratch) {
  static constexpr std::int64_t tile_bytes = Q::info.block_bytes * panel_rows;
  auto* tiles = as_array<UnpackedTile<shape_of<Q>>>(scratch);
  auto* acc = as_array<float>(scratch + unpacked_bytes);  // [rows, 16]
  std::fill_n(acc, task.n_rows * panel_rows, 0.0f);
  const std::int64_t n_blocks = task.n_in / Q::info.block_weights;
  const ActivationStep* steps = task.x.steps;
  for (std::int64_t first = 0; first < n_blocks; first += blocks_per_step<Q>) {
    const std::int64_t n_tiles = std::min(blocks_per_step<Q>, n_blocks - first);
    for (std::int64_t i = 0; i < n_tiles; ++i) {
      unpack<Q>(panel + (first + i) * tile_bytes, tiles[i]);
    }
    for_row_runs<block_rows, 4, 1>(0, task.n_rows, [&]<std::size_t n>(std::int64_t row) {
      multiply_unpacked<shape_of<Q>, n>(tiles, n_tiles, steps + row, acc + row * panel_rows);
    });
    steps += task.n_rows;
  }
  const std::int64_t n = std::min(panel_rows, task.n_out - o);
  for (std::int64_t row = 0; row < task.n_rows; ++row) {
    std::copy_n(acc + row * panel_rows, n, task.out + row * task.out_stride + o);
  }
}

template <class Q>
[[HEARTH_TARGET]] void matmul_integer(const MatmulTask& task) {
  static_assert(sizeof(UnpackedTile<shape_of<Q>>) * blocks_per_step<Q> <= unpacked_bytes);
  // Beyond 8, unpacking once pays for its stores.
  constexpr std::int64_t max_direct_rows = has_direct_kernel<Q> ? 8 : 0;
  for (std::int64_t o = 0; o < task.n_out; o += panel_rows) {
    const std::byte* panel = panel_tiles<Q>(task, o);
    if (task.n_rows > max_direct_rows) {
      multiply_panel_unpacked<Q>(task, panel, o, after_panel(task));
    } else if constexpr (has_direct_kernel<Q>) {
      for_row_runs<direct_rows, 1>(0, task.n_rows, [&]<std::size_t n>(std::int64_t row) {
        multiply_direct<Q, n>(task, panel, o, row);
      });
    }
  }
}
