#include "backend/cpu/kernels/sets.h"

#define HEARTH_KERNEL
#include "backend/cpu/kernels/kernel_set.inl"

KernelSet portable_kernels() {
  return make_kernel_set("portable");
}

}  // namespace hearth::backend::cpu
