#include "backend/cpu/kernels/kernel_set.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "backend/cpu/kernels/sets.h"
#include "base/checked.h"
#include "base/fail.h"

namespace hearth::backend::cpu {

std::vector<KernelSet> supported_kernel_sets() {
  std::vector<KernelSet> sets;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    sets.push_back(avx512_kernels());
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2")) {
    sets.push_back(avx2_kernels());
  }
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

std::int64_t matmul_scratch_bytes(std::int64_t n_in) {
  // Per weight an int16, and per 16 weights two f32 and an int16; or an f32 per weight.
  return panel_rows * std::max(n_in * 2 + n_in / 16 * (4 + 4 + 2), round_up(n_in, 4) * 4);
}

std::int64_t attend_scratch_bytes(const graph::AttentionParams& params) {
  const std::int64_t group = params.n_heads / params.n_kv_heads;
  return 4 * (graph::kv_block_tokens * params.head_dim +
              group * (graph::attention_partition + params.head_dim + 4));
}

}  // namespace hearth::backend::cpu
