#include <immintrin.h>

#include "backend/cpu/kernels/sets.h"

#define HEARTH_ISA "avx2,avxvnni,fma,f16c,bmi2"
#define HEARTH_LANES "backend/cpu/kernels/lanes_avx2.inl"
#define HEARTH_VNNI 1
#include "backend/cpu/kernels/kernel_set.inl"

KernelSet avx_vnni_kernels() {
  return make_kernel_set("avx-vnni");
}

}  // namespace hearth::backend::cpu
