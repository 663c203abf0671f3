#include "backend/cpu/kernels/sets.h"

#define HEARTH_KERNEL                                                                        \
  [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,fma,f16c,bmi2,prefer-vector-width=512"), \
    gnu::flatten]]
#include "backend/cpu/kernels/kernel_set.inl"

KernelSet avx512_kernels() {
  return make_kernel_set("avx512");
}

}  // namespace hearth::backend::cpu
