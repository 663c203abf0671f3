#pragma once
/// Optional instructions of arm64 that kernels use.

namespace hearth::backend::cpu {

struct ArmFeatures {
  bool dot_products = false;     // FEAT_DotProd: sdot
  bool matrix_products = false;  // FEAT_I8MM: smmla
};

/// What the operating system says of this machine.
ArmFeatures arm_features();

}  // namespace hearth::backend::cpu
