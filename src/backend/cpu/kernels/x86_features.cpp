#include "backend/cpu/kernels/x86_features.h"

#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace hearth::backend::cpu {
namespace {

struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

/// CPUID leaf 7; zeros where the processor has no such leaf.
Registers leaf_7(unsigned subleaf) {
  Registers out;
  __get_cpuid_count(7, subleaf, &out.a, &out.b, &out.c, &out.d);
  return out;
}

/// Linux's leave to use the large state of AMX, which a process needs to ask for once.
bool may_use_tiles() {
#if defined(__linux__)
  constexpr int request_permission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int tile_data = 18;               // XFEATURE_XTILEDATA
  return ::syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
  return false;
#endif
}

}  // namespace

// Source of the bits: Intel, Software Developer's Manual, CPUID leaf 7. GCC 12's
// __builtin_cpu_supports knows neither AVX-VNNI nor AMX.
X86Features x86_features() {
  constexpr unsigned has_avx_vnni = 1u << 4;              // subleaf 1, EAX
  constexpr unsigned has_amx_int8 = 1u << 24 | 1u << 25;  // subleaf 0, EDX: AMX-TILE, AMX-INT8
  X86Features out;
  out.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
             __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi2");
  out.avx_vnni = out.avx2 && (leaf_7(1).a & has_avx_vnni) != 0;
  out.avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  out.avx512_vnni = out.avx512 && __builtin_cpu_supports("avx512vnni");
  out.amx = out.avx512_vnni && (leaf_7(0).d & has_amx_int8) == has_amx_int8 && may_use_tiles();
  return out;
}

}  // namespace hearth::backend::cpu
