#include "backend/cpu/kernels/kernel_set.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <string>
#include <utility>

#include "backend/cpu/kernels/sets.h"
#include "base/checked.h"
#include "base/fail.h"

#if defined(__x86_64__)
#include "backend/cpu/kernels/x86_features.h"
#elif defined(__aarch64__)
#include "backend/cpu/kernels/arm_features.h"
#endif

namespace hearth::backend::cpu {

std::vector<KernelSet> supported_kernel_sets() {
  std::vector<KernelSet> sets;
  [[maybe_unused]] const auto add = [&sets](bool is_supported, KernelSet (*make)()) {
    if (is_supported) {
      sets.push_back(make());
    }
  };
#if defined(__x86_64__)
  [[maybe_unused]] const auto features = x86_features();
#elif defined(__aarch64__)
  [[maybe_unused]] const auto features = arm_features();
#endif
#if defined(HEARTH_KERNELS_AMX)
  add(features.amx, amx_kernels);
#endif
#if defined(HEARTH_KERNELS_AVX512_VNNI)
  add(features.avx512_vnni, avx512_vnni_kernels);
#endif
#if defined(HEARTH_KERNELS_AVX512)
  add(features.avx512, avx512_kernels);
#endif
#if defined(HEARTH_KERNELS_AVX_VNNI)
  add(features.avx_vnni, avx_vnni_kernels);
#endif
#if defined(HEARTH_KERNELS_AVX2)
  add(features.avx2, avx2_kernels);
#endif
#if defined(HEARTH_KERNELS_NEON_I8MM)
  add(features.dot_products && features.matrix_products, neon_i8mm_kernels);
#endif
#if defined(HEARTH_KERNELS_NEON_DOTPROD)
  add(features.dot_products, neon_dotprod_kernels);
#endif
#if defined(HEARTH_KERNELS_NEON)
  add(true, neon_kernels);
#endif
  sets.push_back(portable_kernels());
  return sets;
}

Result<KernelSet> choose_kernel_set() {
  auto sets = supported_kernel_sets();
  const char* wanted = std::getenv("HEARTH_CPU_KERNELS");
  if (wanted == nullptr) {
    return sets.front();
  }
  std::string names;
  for (auto& set : sets) {
    if (set.name == wanted) {
      return std::move(set);
    }
    names += format("{}{}", names.empty() ? "" : ", ", set.name);
  }
  return fail(ErrorCode::invalid_argument, "HEARTH_CPU_KERNELS is '{}', expected one of: {}",
              wanted, names);
}

std::int64_t matmul_scratch_bytes(std::int64_t weight_row_bytes, std::int64_t n_in,
                                  std::int64_t n_rows) {
  const std::int64_t decoded = round_up(n_in, 4) * panel_rows * std::int64_t{sizeof(float)};
  return std::max(decoded,
                  panels_at_once * (native_panel_bytes(weight_row_bytes) + unpacked_bytes) +
                      max_panels_together * panel_sum_bytes(n_rows));
}

std::int64_t max_attend_rows(const graph::AttentionParams& params) {
  // 32 queries repay the loading of a key; a power of two fills the rows of the inner loops.
  const std::int64_t rows = 32 * params.n_kv_heads / params.n_heads;
  const auto at_least_one = static_cast<std::uint64_t>(std::clamp<std::int64_t>(rows, 1, 16));
  return static_cast<std::int64_t>(std::bit_floor(at_least_one));
}

std::int64_t attend_scratch_bytes(const graph::AttentionParams& params) {
  const std::int64_t n_queries = max_attend_rows(params) * params.n_heads / params.n_kv_heads;
  return 4 * (attend_chunk * graph::value_stride(params.head_dim) +
              n_queries * graph::attention_partition);
}

}  // namespace hearth::backend::cpu
