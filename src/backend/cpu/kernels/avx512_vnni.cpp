#include <immintrin.h>

#include "backend/cpu/kernels/sets.h"

#define HEARTH_ISA "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma,f16c,bmi2"
#define HEARTH_LANES "backend/cpu/kernels/lanes_avx512.inl"
#define HEARTH_VNNI 1
#include "backend/cpu/kernels/kernel_set.inl"

KernelSet avx512_vnni_kernels() {
  return make_kernel_set("avx512-vnni");
}

}  // namespace hearth::backend::cpu
