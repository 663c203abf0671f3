#include "backend/cpu/kernels/sets.h"

#define HEARTH_LANES "backend/cpu/kernels/lanes_portable.inl"
#include "backend/cpu/kernels/kernel_set.inl"

KernelSet portable_kernels() {
  return make_kernel_set("portable");
}

}  // namespace hearth::backend::cpu
