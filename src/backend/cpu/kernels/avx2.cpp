#include "backend/cpu/kernels/sets.h"

#define HEARTH_KERNEL [[gnu::target("avx2,fma,f16c,bmi2"), gnu::flatten]]
#include "backend/cpu/kernels/kernel_set.inl"

KernelSet avx2_kernels() {
  return make_kernel_set("avx2");
}

}  // namespace hearth::backend::cpu
