#pragma once
/// What the emulator tells the sanitizers, and nothing in builds without them.
///
/// Thread sanitizer: a fiber counts as a thread, and a switch orders nothing. What orders lanes is
/// said here by acquire() and release() at barriers and collectives, so that a missing barrier in a
/// kernel is a data race to the sanitizer, whatever order the lanes really ran in.

#include <cstddef>

#if defined(__SANITIZE_THREAD__)
#define HEARTH_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HEARTH_THREAD_SANITIZER 1
#endif
#endif
#ifndef HEARTH_THREAD_SANITIZER
#define HEARTH_THREAD_SANITIZER 0
#endif

#if defined(__SANITIZE_ADDRESS__)
#define HEARTH_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HEARTH_ADDRESS_SANITIZER 1
#endif
#endif
#ifndef HEARTH_ADDRESS_SANITIZER
#define HEARTH_ADDRESS_SANITIZER 0
#endif

#if HEARTH_THREAD_SANITIZER
extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

#if HEARTH_ADDRESS_SANITIZER
extern "C" {
void __sanitizer_start_switch_fiber(void** fake_stack_save, const void* bottom, std::size_t size);
void __sanitizer_finish_switch_fiber(void* fake_stack_save, const void** bottom_old,
                                     std::size_t* size_old);
void __asan_unpoison_memory_region(const volatile void* address, std::size_t size);
}
#endif

namespace hearth::backend::gpu::emulator {

inline constexpr bool has_thread_sanitizer = HEARTH_THREAD_SANITIZER != 0;

/// What the caller did so far is before what follows an acquire() of the same object.
inline void release([[maybe_unused]] void* object) {
#if HEARTH_THREAD_SANITIZER
  __tsan_release(object);
#endif
}
inline void acquire([[maybe_unused]] void* object) {
#if HEARTH_THREAD_SANITIZER
  __tsan_acquire(object);
#endif
}

/// Between these, what the calling lane accesses is not looked at.
inline void hide_accesses() {
#if HEARTH_THREAD_SANITIZER
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
#endif
}
inline void stop_hiding_accesses() {
#if HEARTH_THREAD_SANITIZER
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
#endif
}

/// Hides the emulator's own bookkeeping, which lanes share, while it lives.
class HiddenFromRaceDetection {
 public:
  HiddenFromRaceDetection() { hide_accesses(); }
  ~HiddenFromRaceDetection() { stop_hiding_accesses(); }
  HiddenFromRaceDetection(const HiddenFromRaceDetection&) = delete;
  HiddenFromRaceDetection& operator=(const HiddenFromRaceDetection&) = delete;
};

}  // namespace hearth::backend::gpu::emulator
