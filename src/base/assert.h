#pragma once
/// HEARTH_ASSERT: what only a programmer can cause. On in release builds too; not for inner loops.

namespace hearth {

/// Prints the failed condition with its place to stderr and aborts.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

}  // namespace hearth

#define HEARTH_ASSERT(condition)                                  \
  do {                                                            \
    if (!(condition)) [[unlikely]] {                              \
      ::hearth::assertion_failed(#condition, __FILE__, __LINE__); \
    }                                                             \
  } while (false)
