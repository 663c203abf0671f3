#pragma once
/// The one piece of assembly, a file per processor: fiber_switch_{x86_64,arm64}.cpp. On other
/// processors the C library switches (fiber_switch_ucontext.cpp), with system calls.

#include <cstddef>
#include <span>

namespace hearth::backend::gpu::emulator {

/// Saves the callee-saved registers on the stack, stores where they lie in *from, and goes on where
/// `to`, a pointer that was stored the same way, stands.
extern "C" void hearth_fiber_switch(void** from, void* to);

/// The pointer with which hearth_fiber_switch begins `entry` on `stack`, whose end is a multiple of
/// 16.
void* first_stack_pointer(std::span<std::byte> stack, void (*entry)());

}  // namespace hearth::backend::gpu::emulator
