#include <arm_neon.h>

#include "backend/cpu/kernels/sets.h"

#define HEARTH_ISA "arch=armv8.2-a+dotprod"
#define HEARTH_LANES "backend/cpu/kernels/lanes_neon.inl"
#define HEARTH_DOTPROD 1
#include "backend/cpu/kernels/kernel_set.inl"

KernelSet neon_dotprod_kernels() {
  return make_kernel_set("neon-dotprod");
}

}  // namespace hearth::backend::cpu
