#pragma once
/// The constructors behind the list in kernel_set.cpp.

#include "backend/cpu/kernels/kernel_set.h"

namespace hearth::backend::cpu {

KernelSet portable_kernels();
#if defined(__x86_64__)
KernelSet avx2_kernels();
KernelSet avx_vnni_kernels();
KernelSet avx512_kernels();
KernelSet avx512_vnni_kernels();
KernelSet amx_kernels();
#elif defined(__aarch64__)
KernelSet neon_kernels();
KernelSet neon_dotprod_kernels();
KernelSet neon_i8mm_kernels();
#endif

}  // namespace hearth::backend::cpu
