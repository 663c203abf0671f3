#include "backend/cpu/kernels/arm_features.h"

namespace hearth::backend::cpu {

ArmFeatures arm_features() {
  return {};
}

}  // namespace hearth::backend::cpu
