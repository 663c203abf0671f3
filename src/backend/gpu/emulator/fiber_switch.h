#pragma once
/// The one piece of assembly, a file per processor: fiber_switch_{x86_64,arm64}.cpp.

namespace hearth::backend::gpu::emulator {

/// Saves the callee-saved registers on the stack, stores the stack pointer in *from, and goes on
/// where `to`, a stack pointer that was stored the same way, stands. It jumps instead of returning:
/// the processor's prediction of returns would be wrong every time.
extern "C" void hearth_fiber_switch(void** from, void* to);

/// The stack pointer from which hearth_fiber_switch begins `entry` at `top`, a multiple of 16.
void* first_stack_pointer(void* top, void (*entry)());

}  // namespace hearth::backend::gpu::emulator
