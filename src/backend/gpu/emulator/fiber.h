#pragma once

#include <cstddef>

#include "backend/gpu/emulator/sanitizers.h"

namespace hearth::backend::gpu::emulator {

/// A place where execution stands: a stack of its own that runs `entry`, or, default constructed,
/// whatever thread switches away from it. The stack is mapped, with a page that faults below it,
/// and is reused for as long as the fiber lives. Not movable: others hold its address.
class Fiber {
 public:
  /// The calling thread.
  Fiber() = default;
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Makes this a fiber that will run `entry`, which must never return. Once.
  /// `number` sets the tops of neighbouring stacks apart, so that they do not share cache sets.
  void start(void (*entry)(), unsigned number);

  /// Stops executing `from`, which is what runs now, and goes on where `to` stands. Returns when
  /// something switches back. The caller's accesses are hidden (emulator/sanitizers.h).
  static void switch_between(Fiber& from, Fiber& to);

  /// What `entry` has to call first.
  static void entered();

 private:
  void* stack_pointer_ = nullptr;  // of the saved registers
  std::byte* mapping_ = nullptr;
  const void* stack_bottom_ = nullptr;  // lowest address; of threads, for the address sanitizer
  std::size_t stack_bytes_ = 0;
#if HEARTH_ADDRESS_SANITIZER
  void* fake_stack_ = nullptr;
#endif
#if HEARTH_THREAD_SANITIZER
  void* race_fiber_ = nullptr;  // the identity of what runs here
  bool owns_race_fiber_ = false;
#endif
};

}  // namespace hearth::backend::gpu::emulator
