#include <new>

#include <ucontext.h>

#include "backend/gpu/emulator/fiber_switch.h"
#include "base/assert.h"

namespace hearth::backend::gpu::emulator {

void hearth_fiber_switch(void** from, void* to) {
  // On the stack that is left, like the registers of the other switches. Zeros, because the address
  // sanitizer takes what is in uc_stack for a stack to clear.
  ucontext_t here{};
  *from = &here;
  HEARTH_ASSERT(::swapcontext(&here, static_cast<ucontext_t*>(to)) == 0);
}

void* first_stack_pointer(std::span<std::byte> stack, void (*entry)()) {
  static_assert(alignof(ucontext_t) <= 16);
  constexpr std::size_t context_bytes = (sizeof(ucontext_t) + 15) / 16 * 16;
  const std::size_t stack_bytes = stack.size() - context_bytes;
  auto* context = new (stack.data() + stack_bytes) ucontext_t{};
  HEARTH_ASSERT(::getcontext(context) == 0);
  context->uc_stack.ss_sp = stack.data();
  context->uc_stack.ss_size = stack_bytes;
  ::makecontext(context, entry, 0);
  return context;
}

}  // namespace hearth::backend::gpu::emulator
