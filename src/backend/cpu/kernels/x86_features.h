#pragma once
/// Groups of x86-64 instructions that kernel sets need.

namespace hearth::backend::cpu {

struct X86Features {
  bool avx2 = false;         // with FMA, F16C and BMI2
  bool avx_vnni = false;     // the above, and dot products of bytes in 256 bits
  bool avx512 = false;       // F, BW, DQ and VL
  bool avx512_vnni = false;  // the above, and dot products of bytes
  bool amx = false;          // the above, and the byte tiles, with the system's leave to use them
};

/// What the processor says, and for AMX the operating system, which is asked for its leave.
X86Features x86_features();

}  // namespace hearth::backend::cpu
