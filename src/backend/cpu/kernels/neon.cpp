#include <arm_neon.h>

#include "backend/cpu/kernels/sets.h"

#define HEARTH_LANES "backend/cpu/kernels/lanes_neon.inl"
#define HEARTH_DOTPROD 0
#include "backend/cpu/kernels/kernel_set.inl"

KernelSet neon_kernels() {
  return make_kernel_set("neon");
}

}  // namespace hearth::backend::cpu
