#pragma once
/// What the emulator tells the sanitizers, and nothing in builds without them.
///
/// Thread sanitizer: a fiber counts as a thread, and a switch orders nothing. What orders lanes is
/// said here by acquire() and release() at barriers and collectives, so that a missing barrier in a
/// kernel is a data race to the sanitizer, whatever order the lanes really ran in.

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
#include <sanitizer/tsan_interface.h>
// In the library, but in no header of GCC's or clang's.
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);   // NOLINT(*-naming)
void AnnotateIgnoreReadsEnd(const char* file, int line);     // NOLINT(*-naming)
void AnnotateIgnoreWritesBegin(const char* file, int line);  // NOLINT(*-naming)
void AnnotateIgnoreWritesEnd(const char* file, int line);    // NOLINT(*-naming)
}
#endif

#if HEARTH_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
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
