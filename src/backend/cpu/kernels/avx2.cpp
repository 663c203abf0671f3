#include <immintrin.h>

#include "backend/cpu/kernels/sets.h"

#define HEARTH_ISA "avx2,fma,f16c,bmi2"
#define HEARTH_LANES "backend/cpu/kernels/lanes_avx2.inl"
#define HEARTH_VNNI 0
#include "backend/cpu/kernels/kernel_set.inl"

KernelSet avx2_kernels() {
  return make_kernel_set("avx2");
}

}  // namespace hearth::backend::cpu
