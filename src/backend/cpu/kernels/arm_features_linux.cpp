#include <sys/auxv.h>

#include "backend/cpu/kernels/arm_features.h"

namespace hearth::backend::cpu {

// Bits of AT_HWCAP and AT_HWCAP2. Source: Linux, arch/arm64/include/uapi/asm/hwcap.h, which old
// systems' headers have without the newer bits.
ArmFeatures arm_features() {
  constexpr unsigned long has_dot_products = 1ul << 20;
  constexpr unsigned long has_matrix_products = 1ul << 13;
  return {.dot_products = (::getauxval(AT_HWCAP) & has_dot_products) != 0,
          .matrix_products = (::getauxval(AT_HWCAP2) & has_matrix_products) != 0};
}

}  // namespace hearth::backend::cpu
