#include "backend/cpu/kernels/kernel_set.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <string>
#include <utility>

#include "backend/cpu/kernels/sets.h"
#include "base/checked.h"
#include "base/fail.h"

#if defined(HEARTH_X86_KERNELS)
#include <cpuid.h>
#elif defined(HEARTH_ARM_KERNELS)
#include "backend/cpu/kernels/arm_features.h"
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace hearth::backend::cpu {

#if defined(HEARTH_X86_KERNELS)
namespace {

/// CPUID leaf 7, subleaf 1, EAX bit 4, which GCC 12's __builtin_cpu_supports does not know.
bool has_avx_vnni() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & 1u << 4) != 0;
}

/// CPUID leaf 7, EDX bits 24 (AMX-TILE) and 25 (AMX-INT8), and Linux's leave to use the large
/// state, which is asked for once per process.
bool has_amx() {
#if defined(__linux__)
  constexpr unsigned both = 1u << 24 | 1u << 25;
  constexpr int request_permission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int tile_data = 18;               // XFEATURE_XTILEDATA
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & both) == both &&
         ::syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
  return false;
#endif
}

}  // namespace
#endif

std::vector<KernelSet> supported_kernel_sets() {
  std::vector<KernelSet> sets;
#if defined(HEARTH_X86_KERNELS)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    if (__builtin_cpu_supports("avx512vnni")) {
      if (has_amx()) {
        sets.push_back(amx_kernels());
      }
      sets.push_back(avx512_vnni_kernels());
    }
    sets.push_back(avx512_kernels());
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi2")) {
    if (has_avx_vnni()) {
      sets.push_back(avx_vnni_kernels());
    }
    sets.push_back(avx2_kernels());
  }
#elif defined(HEARTH_ARM_KERNELS)
  const auto features = arm_features();
  if (features.dot_products) {
    if (features.matrix_products) {
      sets.push_back(neon_i8mm_kernels());
    }
    sets.push_back(neon_dotprod_kernels());
  }
  sets.push_back(neon_kernels());
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
  return std::max(decoded, panels_together * panel_scratch_bytes(weight_row_bytes, n_rows));
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
