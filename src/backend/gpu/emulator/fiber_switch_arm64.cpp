#include "backend/gpu/emulator/fiber_switch.h"

#ifdef __APPLE__
#define HEARTH_SYMBOL "_hearth_fiber_switch"
#else
#define HEARTH_SYMBOL "hearth_fiber_switch"
#endif

// AAPCS64: x19-x30 and the low halves of v8-v15 belong to the caller. It jumps instead of
// returning, because the processor's prediction of returns would be wrong every time.
__asm__(".text\n.globl " HEARTH_SYMBOL "\n.p2align 2\n" HEARTH_SYMBOL
        ":\n"
        R"(
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  br x30
)");

namespace hearth::backend::gpu::emulator {

void* first_stack_pointer(std::span<std::byte> stack, void (*entry)()) {
  constexpr int n_saved = 20;
  constexpr int link_register = 11;  // x30, in which the switch finds where to go
  auto** saved = reinterpret_cast<void**>(stack.data() + stack.size()) - n_saved;
  for (int i = 0; i < n_saved; ++i) {
    saved[i] = nullptr;
  }
  saved[link_register] = reinterpret_cast<void*>(entry);
  return static_cast<void*>(saved);
}

}  // namespace hearth::backend::gpu::emulator
