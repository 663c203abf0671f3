/// The whole kernel set, compiled once per instruction set: the including file defines
/// HEARTH_TARGET, the attribute that names the instructions, and HEARTH_LANES, the file that
/// implements sixteen lanes with them, and then calls make_kernel_set(name).
///
/// Functions carry the attribute instead of the file having compiler flags of its own, and entry
/// points are flattened: everything they call is inlined into them. So no inline function of a
/// shared header is ever emitted with instructions that another machine lacks, which the linker
/// might pick for everyone.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "backend/cpu/kernels/kernel_set.h"
#include "base/bytes.h"
#include "base/lanes.h"
#include "base/math.h"
#include "graph/ops/rms_norm.h"
#include "quant/activation.h"
#include "quant/all_types.h"
#include "quant/decode.h"

namespace hearth::backend::cpu {
namespace {

#include HEARTH_LANES
#include "backend/cpu/kernels/attend.inl"
#include "backend/cpu/kernels/matmul.inl"

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
  if (kind == graph::ActivationKind::silu) {
    for (std::int64_t i = 0; i < n; ++i) {
      out[i] = canonical_silu(gate[i]) * up[i];
    }
  } else {
    for (std::int64_t i = 0; i < n; ++i) {
      out[i] = canonical_gelu_tanh(gate[i]) * up[i];
    }
  }
}

KernelSet make_kernel_set(std::string_view name) {
  KernelSet set{.name = name,
                .matmul = std::vector<MatmulKernel>(256),
                .attend = attend,
                .rope_angles = rope_angles,
                .rotate_head = rotate_head,
                .rms_norm = rms_norm,
                .gate = gate_values};
  quant::AllQuantTypes::for_each([&]<class Q>() {
    auto& kernel = set.matmul[static_cast<std::size_t>(Q::info.dtype)];
    if constexpr (quant::HasIntegerForm<Q>) {
      kernel = matmul_integer<Q>;
    } else if constexpr (quant::FloatDecodable<Q>) {
      kernel = matmul_float<Q>;
    }
  });
  return set;
}

}  // namespace
