#include <cstddef>

#include <sys/sysctl.h>

#include "backend/cpu/kernels/arm_features.h"

namespace hearth::backend::cpu {
namespace {

/// Names that the system does not know are features that it does not have.
bool has(const char* name) {
  int value = 0;
  std::size_t size = sizeof value;
  return ::sysctlbyname(name, &value, &size, nullptr, 0) == 0 && value != 0;
}

}  // namespace

ArmFeatures arm_features() {
  return {.dot_products = has("hw.optional.arm.FEAT_DotProd"),
          .matrix_products = has("hw.optional.arm.FEAT_I8MM")};
}

}  // namespace hearth::backend::cpu
