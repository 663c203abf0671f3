#include <immintrin.h>

#include "backend/cpu/kernels/sets.h"

#define HEARTH_ISA "avx512f,avx512bw,avx512dq,avx512vl,fma,f16c,bmi2"
#define HEARTH_LANES "backend/cpu/kernels/lanes_avx512.inl"
#define HEARTH_VNNI 0
#include "backend/cpu/kernels/kernel_set.inl"

KernelSet avx512_kernels() {
  return make_kernel_set("avx512");
}

}  // namespace hearth::backend::cpu
