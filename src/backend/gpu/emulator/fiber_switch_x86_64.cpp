#include "backend/gpu/emulator/fiber_switch.h"

// System V calling convention: rbx, rbp and r12-r15 belong to the caller. It jumps instead of
// returning, because the processor's prediction of returns would be wrong every time.
__asm__(R"(
.text
.globl hearth_fiber_switch
.type hearth_fiber_switch, @function
hearth_fiber_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rcx
  jmp *%rcx
.size hearth_fiber_switch, .-hearth_fiber_switch
.section .note.GNU-stack, "", @progbits
.text
)");

namespace hearth::backend::gpu::emulator {

void* first_stack_pointer(std::span<std::byte> stack, void (*entry)()) {
  auto** place = reinterpret_cast<void**>(stack.data() + stack.size());
  *--place = nullptr;  // stands for a return address, so that the stack is aligned as after a call
  *--place = reinterpret_cast<void*>(entry);
  for (int i = 0; i < 6; ++i) {  // the registers
    *--place = nullptr;
  }
  return static_cast<void*>(place);
}

}  // namespace hearth::backend::gpu::emulator
