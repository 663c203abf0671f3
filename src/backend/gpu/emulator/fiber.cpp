#include "backend/gpu/emulator/fiber.h"

#include <sys/mman.h>

#include "backend/gpu/emulator/fiber_switch.h"
#include "base/assert.h"

namespace hearth::backend::gpu::emulator {
namespace {

constexpr std::size_t guard_bytes = 16384;  // a page of any system of today
// The address sanitizer puts a red zone around every local.
constexpr std::size_t usable_bytes = HEARTH_ADDRESS_SANITIZER != 0 ? 262144 : 65536;
constexpr std::size_t mapping_bytes = guard_bytes + usable_bytes;

std::byte* map_stack() {
  void* mapping =
      ::mmap(nullptr, mapping_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  HEARTH_ASSERT(mapping != MAP_FAILED);
  HEARTH_ASSERT(::mprotect(mapping, guard_bytes, PROT_NONE) == 0);
  return static_cast<std::byte*>(mapping);
}

#if HEARTH_ADDRESS_SANITIZER
// Who switched last. Whoever runs next is told where that stack is, which nobody knows of a
// thread's.
thread_local Fiber* left_fiber = nullptr;
#endif

}  // namespace

Fiber::~Fiber() {
#if HEARTH_THREAD_SANITIZER
  if (owns_race_fiber_) {
    __tsan_destroy_fiber(race_fiber_);
  }
#endif
  if (mapping_ != nullptr) {
#if HEARTH_ADDRESS_SANITIZER
    // Frames that were left for good have poisoned it, and somebody else may get these pages.
    __asan_unpoison_memory_region(mapping_, mapping_bytes);
#endif
    ::munmap(mapping_, mapping_bytes);
  }
}

void Fiber::start(void (*entry)(), unsigned number) {
  HEARTH_ASSERT(mapping_ == nullptr);
  mapping_ = map_stack();
  stack_bottom_ = mapping_ + guard_bytes;
  stack_bytes_ = usable_bytes;
  constexpr std::size_t step_bytes = 320;  // five cache lines; tops of 32 stacks spread over 10 KiB
  const std::size_t bytes = usable_bytes - (number % 32) * step_bytes;
  stack_pointer_ = first_stack_pointer({mapping_ + guard_bytes, bytes}, entry);
#if HEARTH_THREAD_SANITIZER
  race_fiber_ = __tsan_create_fiber(0);
  owns_race_fiber_ = true;
#endif
}

void Fiber::switch_between(Fiber& from, Fiber& to) {
  void* stack_pointer = to.stack_pointer_;
#if HEARTH_ADDRESS_SANITIZER
  left_fiber = &from;
  __sanitizer_start_switch_fiber(&from.fake_stack_, to.stack_bottom_, to.stack_bytes_);
#endif
#if HEARTH_THREAD_SANITIZER
  if (from.race_fiber_ == nullptr) {
    from.race_fiber_ = __tsan_get_current_fiber();
  }
  // A fiber that is destroyed where it stands must not be hiding anything; what is read of fibers
  // is.
  void* race_fiber = to.race_fiber_;
  stop_hiding_accesses();
  __tsan_switch_to_fiber(race_fiber, __tsan_switch_to_fiber_no_sync);
#endif
  hearth_fiber_switch(&from.stack_pointer_, stack_pointer);
#if HEARTH_THREAD_SANITIZER
  hide_accesses();
#endif
#if HEARTH_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(from.fake_stack_, &left_fiber->stack_bottom_,
                                  &left_fiber->stack_bytes_);
#endif
}

void Fiber::entered() {
#if HEARTH_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(nullptr, &left_fiber->stack_bottom_, &left_fiber->stack_bytes_);
#endif
}

}  // namespace hearth::backend::gpu::emulator
