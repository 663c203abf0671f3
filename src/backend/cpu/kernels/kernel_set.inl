/// The whole kernel set, compiled once per instruction set: the including file defines HEARTH_ISA,
/// its instructions, and HEARTH_LANES, the file that implements vectors with them, and then calls
/// make_kernel_set(name).

#include "backend/cpu/kernels/target.inl"

namespace hearth::backend::cpu {
namespace {

// Each of these includes what it builds on.
#include "backend/cpu/kernels/attend.inl"
#include "backend/cpu/kernels/interleave.inl"
#include "backend/cpu/kernels/matmul_float.inl"
#include "backend/cpu/kernels/matmul_integer.inl"
#include "backend/cpu/kernels/recurrent.inl"

/// n values as steps `stride` apart.
[[HEARTH_TARGET, gnu::flatten]] void quantize_row(const float* x, std::int64_t n, int block,
                                                  ActivationStep* steps, std::int64_t stride) {
  for (std::int64_t k = 0; k < n; k += step_weights, steps += stride) {
    const auto n_here = static_cast<std::size_t>(std::min(step_weights, n - k));
    ActivationStep& step = *steps;
    if (block == 256) {
      quant::quantize_block<256>(x + k, step.codes.data(), step.scales[0], step.sums_16.data());
    } else {
      for (std::size_t i = 0; i < n_here / 32; ++i) {
        quant::quantize_block<32>(x + k + 32 * i, &step.codes[32 * i], step.scales[i],
                                  &step.sums_16[2 * i]);
      }
    }
    for (std::size_t i = 0; i < n_here / 32; ++i) {
      step.wide_sums_32[i] = step.sums_16[2 * i] + step.sums_16[2 * i + 1];
      step.sums_32[i] = static_cast<std::int16_t>(step.wide_sums_32[i]);
    }
  }
}

[[HEARTH_TARGET, gnu::flatten]] void rope_angles(const graph::RopeTable& table,
                                                 std::int32_t position, float* cosines,
                                                 float* sines) {
  table.angles(position, cosines, sines);
}

[[HEARTH_TARGET, gnu::flatten]] void rotate_head(const graph::RopeParams& params,
                                                 const float* cosines, const float* sines,
                                                 const float* in, float* out) {
  graph::rotate_head(params, cosines, sines, in, out);
}

[[HEARTH_TARGET, gnu::flatten]] void rms_norm(const float* x, const float* weight, std::int64_t n,
                                              float eps, float* y) {
  graph::rms_norm_run(x, weight, n, eps, y);
}

[[HEARTH_TARGET, gnu::flatten]] void gate_values(graph::ActivationKind kind, const float* gate,
                                                 const float* up, std::int64_t n, float* out) {
  const auto gate_with = [&](auto activation) {
    for (std::int64_t i = 0; i < n; ++i) {
      out[i] = activation(gate[i]) * up[i];
    }
  };
  switch (kind) {
    case graph::ActivationKind::silu:
      return gate_with(canonical_silu);
    case graph::ActivationKind::gelu_tanh:
      return gate_with(canonical_gelu_tanh);
    case graph::ActivationKind::sigmoid:
      return gate_with(canonical_sigmoid);
  }
}

[[HEARTH_TARGET, gnu::flatten]] void route(const float* logits, std::int64_t n_experts,
                                           std::int64_t n_used, float* probabilities,
                                           float* routing) {
  graph::route_row(logits, n_experts, n_used, probabilities, routing);
}

[[HEARTH_TARGET]] void add_scaled(float weight, const float* x, std::int64_t n, float* sum) {
  for (std::int64_t i = 0; i < n; ++i) {
    sum[i] = std::fma(weight, x[i], sum[i]);
  }
}

KernelSet make_kernel_set(std::string_view name) {
  KernelSet set{.name = name,
                .matmul = std::vector<MatmulKernel>(256),
                .matmul_many = std::vector<MatmulKernel>(256),
                .interleave = std::vector<InterleaveKernel>(256),
                .quantize = quantize_row,
                .attend = attend,
                .fold_partial = fold_partial,
                .finish_partial = finish_partial,
                .rope_angles = rope_angles,
                .rotate_head = rotate_head,
                .rms_norm = rms_norm,
                .gate = gate_values,
                .unit_vector = unit_vector,
                .delta = delta_strip,
                .conv = conv_channels,
                .route = route,
                .add_scaled = add_scaled};
  quant::AllQuantTypes::for_each([&]<class Q>() {
    const auto dtype = static_cast<std::size_t>(Q::info.dtype);
    if constexpr (quant::HasIntegerForm<Q>) {
      set.matmul[dtype] = matmul_integer<Q>;
    } else if constexpr (quant::FloatDecodable<Q>) {
      set.matmul[dtype] = matmul_float<Q>;
    }
    if constexpr (has_tiles<Q>) {
      static_assert(tile_covers_block<Q>());
      set.interleave[dtype] = interleave_panel<Q>;
    }
  });
  return set;
}

}  // namespace
