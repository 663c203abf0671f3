/// Matrix products on the formats' native layout, included once per instruction set (see
/// kernel_set.inl).
///
/// Sixteen weight rows at a time become a panel in thread scratch, in which neighbours in memory
/// are the sixteen rows at one place of k. So lanes are weight rows: an activation is the same for
/// all of them, no sum ever goes across lanes, and every (weight row, activation row) adds up in
/// the canonical order. The panel then meets all activation rows.

/// The weight rows of one panel: n_rows of them, 1 to 16. Lanes beyond repeat the last row.
struct WeightRows {
  const std::byte* data;
  std::int64_t row_bytes;
  std::int64_t n_rows;

  /// The block that holds element k of the row in `lane`.
  template <class Q>
  [[nodiscard]] const typename Q::Block* block(std::int64_t lane, std::int64_t k) const {
    const std::int64_t row = lane < n_rows ? lane : n_rows - 1;
    return as_array<typename Q::Block>(data + row * row_bytes) + k / Q::info.block_weights;
  }
};

/// Sixteen rows of an integer format. Weights are code * sub_scale: at most 4096 in magnitude.
struct IntegerPanel {
  std::int16_t* weights;      // [n_in / 2][16 rows][2]
  float* scales;              // [n_in / unit][16 rows]
  float* offsets;             // [n_in / unit][16 rows]
  std::int16_t* sub_offsets;  // [n_in / 32][16 rows][2]

  IntegerPanel(std::byte* scratch, std::int64_t n_in)
      : weights(as_array<std::int16_t>(scratch)),
        scales(as_array<float>(scratch + n_in * panel_rows * 2)),
        offsets(scales + n_in / 16 * panel_rows),
        sub_offsets(as_array<std::int16_t>(scratch + n_in / 16 * panel_rows * (16 * 2 + 4 + 4))) {}
};

/// Four rows of n 32-bit words, `stride` bytes apart, become columns: word i of row r goes to lane
/// r of entry i of `out` [n][16 lanes]. n counts as rounded up to a multiple of four.
[[HEARTH_TARGET]] inline void turn_four_rows(const void* rows, std::size_t stride, std::size_t n,
                                             void* out) {
  using Words [[gnu::vector_size(16)]] = std::uint32_t;
  constexpr std::size_t entry = panel_rows * sizeof(std::uint32_t);
  for (std::size_t i = 0; i < n; i += 4) {
    const std::size_t at = i * sizeof(std::uint32_t);
    const auto a = load<Words>(rows, at);
    const auto b = load<Words>(rows, at + stride);
    const auto c = load<Words>(rows, at + 2 * stride);
    const auto d = load<Words>(rows, at + 3 * stride);
    const Words ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const Words ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const Words cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const Words cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    store<Words>(out, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5), i * entry);
    store<Words>(out, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7), (i + 1) * entry);
    store<Words>(out, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5), (i + 2) * entry);
    store<Words>(out, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7), (i + 3) * entry);
  }
}

/// code * sub_scale of a whole block.
template <class Q>
[[HEARTH_TARGET]] inline void multiply_codes(const quant::IntegerBlock& block,
                                             std::int16_t* weights) {
  // Vector types, because GCC 12 takes a loop over 16 bytes apart into single bytes.
  using Codes [[gnu::vector_size(8)]] = std::int8_t;
  using Weights [[gnu::vector_size(16)]] = std::int16_t;
  for (std::size_t i = 0; i < Q::info.block_weights; i += 8) {
    const auto codes = __builtin_convertvector(load<Codes>(block.codes.data(), i), Weights);
    if constexpr (Q::integers.sub < Q::integers.unit) {
      store<Weights>(weights, codes * block.sub_scales[i / 16], i * sizeof(std::int16_t));
    } else {
      store<Weights>(weights, codes, i * sizeof(std::int16_t));
    }
  }
}

/// Scales and offsets of the block at k.
template <class Q>
[[HEARTH_TARGET]] inline void put_scales(const quant::IntegerBlock& block, std::int64_t k,
                                         std::int64_t lane, const IntegerPanel& panel) {
  constexpr std::size_t n_units = Q::info.block_weights / Q::integers.unit;
  const std::int64_t first = k / Q::integers.unit;
  for (std::size_t unit = 0; unit < n_units; ++unit) {
    const std::int64_t at = (first + static_cast<std::int64_t>(unit)) * panel_rows + lane;
    panel.scales[at] = block.scales[unit];
    if constexpr (Q::integers.has_offset) {
      panel.offsets[at] = block.offsets[unit];
    }
  }
  if constexpr (Q::integers.has_offset) {
    for (std::size_t group = 0; group < Q::info.block_weights / 16; ++group) {
      const std::int64_t pair = k / 32 + static_cast<std::int64_t>(group / 2);
      panel.sub_offsets[(pair * panel_rows + lane) * 2 + static_cast<std::int64_t>(group % 2)] =
          block.sub_offsets[group];
    }
  }
}

template <class Q>
[[HEARTH_TARGET]] inline void fill_panel(const WeightRows& rows, std::int64_t n_in,
                                         const IntegerPanel& panel) {
  constexpr std::size_t n_weights = Q::info.block_weights;
  quant::IntegerBlock block;
  alignas(64) std::array<std::int16_t, 4 * n_weights> weights;  // of four rows
  for (std::int64_t k = 0; k < n_in; k += Q::info.block_weights) {
    for (std::int64_t first_lane = 0; first_lane < panel_rows; first_lane += 4) {
      for (std::int64_t r = 0; r < 4; ++r) {
        Q::to_integers(*rows.block<Q>(first_lane + r, k), block);
        multiply_codes<Q>(block, weights.data() + r * Q::info.block_weights);
        put_scales<Q>(block, k, first_lane + r, panel);
      }
      turn_four_rows(weights.data(), n_weights * sizeof(std::int16_t), n_weights / 2,
                     panel.weights + k * panel_rows + 2 * first_lane);
    }
  }
}

/// The canonical sums of quant/integer_form.h of one panel with `n` activation rows from `row` on.
template <class Q, std::size_t n>
[[HEARTH_TARGET]] inline std::array<Floats, n> dot_panel(const IntegerPanel& panel,
                                                         const MatmulTask& task, std::int64_t row) {
  constexpr std::int64_t unit = Q::integers.unit;
  const std::int64_t n_in = task.n_in;
  const std::int64_t n_scales = n_in / Q::integers.activation_block;
  const std::int64_t n_sums = n_in / quant::activation_sum_group;
  const std::int16_t* codes = task.x.codes + row * n_in;
  const float* scales = task.x.scales + row * n_scales;
  const std::int16_t* sums = task.x.sums + row * n_sums;
  std::array<Floats, n> acc{};
  for (std::int64_t k = 0; k < n_in; k += unit) {
    std::array<Ints, n> isum{};
    for (std::int64_t i = k; i < k + unit; i += 2) {
      for (std::size_t r = 0; r < n; ++r) {
        isum[r] = add_pair_products(panel.weights + i * panel_rows,
                                    codes + static_cast<std::int64_t>(r) * n_in + i, isum[r]);
      }
    }
    for (std::size_t r = 0; r < n; ++r) {
      const auto at = static_cast<std::int64_t>(r);
      const Floats da = same_floats(scales[at * n_scales + k / Q::integers.activation_block]);
      const Floats scale = multiply(load_floats(panel.scales + k / unit * panel_rows), da);
      acc[r] = multiply_add(scale, to_floats(isum[r]), acc[r]);
      if constexpr (Q::integers.has_offset) {
        Ints msum{};
        for (std::int64_t i = k / 16; i < (k + unit) / 16; i += 2) {
          msum =
              add_pair_products(panel.sub_offsets + i * panel_rows, sums + at * n_sums + i, msum);
        }
        const Floats offset = multiply(load_floats(panel.offsets + k / unit * panel_rows), da);
        acc[r] = multiply_add(offset, to_floats(msum), acc[r]);
      }
    }
  }
  return acc;
}

/// Stores the dots of n_rows weight rows, from row o on, with one activation row.
[[HEARTH_TARGET]] inline void put_outputs(Floats dots, const MatmulTask& task, std::int64_t row,
                                          std::int64_t o, std::int64_t n_rows) {
  float* out = task.out + row * task.out_stride + o;
  if (n_rows == panel_rows) {
    store_floats(dots, out);
  } else {
    std::array<float, n_lanes> all;
    store_floats(dots, all.data());
    std::copy_n(all.begin(), n_rows, out);
  }
}

template <class Q>
[[HEARTH_TARGET, gnu::flatten]] void matmul_integer(const MatmulTask& task) {
  constexpr std::size_t rows_at_once = 4;  // so that a load of weights serves four products
  const IntegerPanel panel(task.scratch, task.n_in);
  for (std::int64_t o = 0; o < task.n_out; o += panel_rows) {
    const std::int64_t n = std::min(panel_rows, task.n_out - o);
    fill_panel<Q>({task.weights + o * task.weight_row_bytes, task.weight_row_bytes, n}, task.n_in,
                  panel);
    std::int64_t row = 0;
    for (; row + std::int64_t{rows_at_once} <= task.n_rows; row += rows_at_once) {
      const auto dots = dot_panel<Q, rows_at_once>(panel, task, row);
      for (std::size_t r = 0; r < rows_at_once; ++r) {
        put_outputs(dots[r], task, row + static_cast<std::int64_t>(r), o, n);
      }
    }
    for (; row < task.n_rows; ++row) {
      put_outputs(dot_panel<Q, 1>(panel, task, row).front(), task, row, o, n);
    }
  }
}

/// Sixteen rows of a type without an integer form, decoded: panel [n_in, rounded up to a multiple
/// of four][16 rows].
template <class Q>
[[HEARTH_TARGET]] inline void fill_panel(const WeightRows& rows, std::int64_t n_in, float* panel) {
  constexpr std::int64_t run = std::max<std::int64_t>(Q::info.block_weights, 64);
  std::array<float, 4 * run> weights{};  // of four rows
  for (std::int64_t k = 0; k < n_in; k += run) {
    const auto n = static_cast<std::size_t>(std::min(run, n_in - k));
    for (std::int64_t first_lane = 0; first_lane < panel_rows; first_lane += 4) {
      for (std::int64_t r = 0; r < 4; ++r) {
        quant::decode_blocks<Q>(
            {rows.block<Q>(first_lane + r, k), n / static_cast<std::size_t>(Q::info.block_weights)},
            {weights.data() + r * run, n});
      }
      turn_four_rows(weights.data(), run * sizeof(float), n, panel + k * panel_rows + first_lane);
    }
  }
}

/// The canonical sums for float weights of one panel with one activation row: four partial sums by
/// k mod 4.
[[HEARTH_TARGET]] inline Floats dot_panel(const float* panel, const float* x, std::int64_t n_in) {
  std::array<Floats, 4> partial{};
  std::int64_t k = 0;
  for (; k + 4 <= n_in; k += 4) {
    for (std::int64_t j = 0; j < 4; ++j) {
      auto& sum = partial[static_cast<std::size_t>(j)];
      sum = multiply_add(load_floats(panel + (k + j) * panel_rows), same_floats(x[k + j]), sum);
    }
  }
  for (std::int64_t j = 0; k + j < n_in; ++j) {
    auto& sum = partial[static_cast<std::size_t>(j)];
    sum = multiply_add(load_floats(panel + (k + j) * panel_rows), same_floats(x[k + j]), sum);
  }
  return add(add(partial[0], partial[1]), add(partial[2], partial[3]));
}

template <class Q>
[[HEARTH_TARGET, gnu::flatten]] void matmul_float(const MatmulTask& task) {
  auto* panel = as_array<float>(task.scratch);
  for (std::int64_t o = 0; o < task.n_out; o += panel_rows) {
    const std::int64_t n = std::min(panel_rows, task.n_out - o);
    fill_panel<Q>({task.weights + o * task.weight_row_bytes, task.weight_row_bytes, n}, task.n_in,
                  panel);
    for (std::int64_t row = 0; row < task.n_rows; ++row) {
      put_outputs(dot_panel(panel, task.x.values + row * task.n_in, task.n_in), task, row, o, n);
    }
  }
}
