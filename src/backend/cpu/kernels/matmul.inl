/// Matrix products on the formats' native layout, included once per instruction set (see
/// kernel_set.inl). One weight row at a time is unpacked to int16 (codes times sub-scales) or f32,
/// then meets every activation row.

/// A weight row of one integer format, unpacked into thread scratch.
struct IntegerRow {
  std::int16_t* weights;      // [n_in], code * sub_scale: at most 63 * 32 in magnitude
  float* scales;              // [n_in / unit]
  float* offsets;             // [n_in / unit]
  std::int16_t* sub_offsets;  // [n_in / 16]

  IntegerRow(std::byte* scratch, std::int64_t n_in)
      : weights(static_cast<std::int16_t*>(static_cast<void*>(scratch))),
        scales(static_cast<float*>(static_cast<void*>(scratch + n_in * 2))),
        offsets(scales + n_in / 16),
        sub_offsets(static_cast<std::int16_t*>(static_cast<void*>(offsets + n_in / 16))) {}
};

template <class Q>
inline void unpack_row(const std::byte* row, std::int64_t n_in, const IntegerRow& out) {
  constexpr int n_weights = static_cast<int>(Q::info.block_weights);
  constexpr int n_units = n_weights / Q::integers.unit;
  quant::IntegerBlock block;
  for (std::int64_t k = 0; k < n_in; k += n_weights, row += Q::info.block_bytes) {
    Q::to_integers(*static_cast<const typename Q::Block*>(static_cast<const void*>(row)), block);
    for (int i = 0; i < n_weights; ++i) {
      const int scale = Q::integers.sub < Q::integers.unit
                            ? block.sub_scales[static_cast<std::size_t>(i / 16)]
                            : 1;
      out.weights[k + i] =
          static_cast<std::int16_t>(block.codes[static_cast<std::size_t>(i)] * scale);
    }
    for (int unit = 0; unit < n_units; ++unit) {
      out.scales[k / Q::integers.unit + unit] = block.scales[static_cast<std::size_t>(unit)];
      if constexpr (Q::integers.has_offset) {
        out.offsets[k / Q::integers.unit + unit] = block.offsets[static_cast<std::size_t>(unit)];
      }
    }
    if constexpr (Q::integers.has_offset) {
      for (int group = 0; group < n_weights / 16; ++group) {
        out.sub_offsets[k / 16 + group] = block.sub_offsets[static_cast<std::size_t>(group)];
      }
    }
  }
}

/// The canonical sum of quant/integer_form.h for one unpacked weight row and one activation row.
template <class Q>
inline float integer_dot(const IntegerRow& w, const std::int16_t* codes, const float* scales,
                         const std::int16_t* sums, std::int64_t n_in) {
  constexpr int unit = Q::integers.unit;
  float acc = 0;
  for (std::int64_t k = 0; k < n_in; k += unit) {
    std::int32_t isum = 0;
    for (int i = 0; i < unit; ++i) {
      isum += w.weights[k + i] * codes[k + i];
    }
    const float da = scales[k / Q::integers.activation_block];
    acc = std::fma(w.scales[k / unit] * da, static_cast<float>(isum), acc);
    if constexpr (Q::integers.has_offset) {
      std::int32_t msum = 0;
      for (int group = 0; group < unit / 16; ++group) {
        msum += w.sub_offsets[k / 16 + group] * sums[k / 16 + group];
      }
      acc = std::fma(w.offsets[k / unit] * da, static_cast<float>(msum), acc);
    }
  }
  return acc;
}

template <class Q>
HEARTH_KERNEL void matmul_integer(const MatmulTask& task) {
  const IntegerRow w(task.scratch, task.n_in);
  for (std::int64_t o = 0; o < task.n_out; ++o) {
    unpack_row<Q>(task.weights + o * task.weight_row_bytes, task.n_in, w);
    for (std::int64_t row = 0; row < task.n_rows; ++row) {
      task.out[row * task.out_stride + o] =
          integer_dot<Q>(w, task.x.codes + row * task.n_in,
                         task.x.scales + row * (task.n_in / Q::integers.activation_block),
                         task.x.sums + row * (task.n_in / quant::activation_sum_group), task.n_in);
    }
  }
}

/// The canonical sum for float weights: four partial sums by k mod 4.
inline float float_dot(const float* w, const float* x, std::int64_t n_in) {
  float partial[4] = {};
  std::int64_t k = 0;
  for (; k + 4 <= n_in; k += 4) {
    for (int j = 0; j < 4; ++j) {
      partial[j] = std::fma(w[k + j], x[k + j], partial[j]);
    }
  }
  for (int j = 0; k + j < n_in; ++j) {
    partial[j] = std::fma(w[k + j], x[k + j], partial[j]);
  }
  return (partial[0] + partial[1]) + (partial[2] + partial[3]);
}

/// Types without an integer form: the row is decoded to f32 first.
template <class Q>
HEARTH_KERNEL void matmul_float(const MatmulTask& task) {
  auto* w = static_cast<float*>(static_cast<void*>(task.scratch));
  for (std::int64_t o = 0; o < task.n_out; ++o) {
    const auto* blocks = static_cast<const typename Q::Block*>(
        static_cast<const void*>(task.weights + o * task.weight_row_bytes));
    quant::decode_blocks<Q>({blocks, static_cast<std::size_t>(task.n_in / Q::info.block_weights)},
                            {w, static_cast<std::size_t>(task.n_in)});
    for (std::int64_t row = 0; row < task.n_rows; ++row) {
      task.out[row * task.out_stride + o] =
          float_dot(w, task.x.values + row * task.n_in, task.n_in);
    }
  }
}
