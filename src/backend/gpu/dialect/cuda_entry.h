#pragma once
/// What the entry of a CUDA kernel is made with (dialect/cuda.h).

// clang-format off
// Of a multiprocessor, at least: a thread has up to 128 of its 65,536 registers.
#define THREADS_AT_ONCE 512
#define WIDE_THREADS_AT_ONCE 320  // up to 168 in threadgroups of 160, 255 in those of 128
#define BUFFER_DECLARATION(declaration, name) declaration
#define BUFFER_NAME(declaration, name) name
#define DECLARATION_OF(buffer) BUFFER_DECLARATION buffer
#define NAME_OF(buffer) BUFFER_NAME buffer
// what(a), what(b), ... for up to 64 arguments.
#define PARENTHESES ()
#define SCAN_4(...)  __VA_ARGS__
#define SCAN_16(...) SCAN_4(SCAN_4(SCAN_4(SCAN_4(__VA_ARGS__))))
#define SCAN_64(...) SCAN_16(SCAN_16(SCAN_16(SCAN_16(__VA_ARGS__))))
#define FOR_EACH(what, ...) SCAN_64(FOR_EACH_STEP(what, __VA_ARGS__))
#define FOR_EACH_STEP(what, first, ...) what(first) __VA_OPT__(, FOR_EACH_AGAIN PARENTHESES (what, __VA_ARGS__))
#define FOR_EACH_AGAIN() FOR_EACH_STEP

// The next kernel may be made ready as soon as this one runs, and waits for its end before it
// begins: what launching costs is hidden (CUDA C++ Programming Guide, "Programmatic Dependent
// Launch and Synchronization").
#if __CUDA_ARCH__ >= 900
#define LAUNCH_NEXT() asm volatile("griddepcontrol.launch_dependents;" ::: "memory")
#define WAIT_FOR_KERNEL_BEFORE() asm volatile("griddepcontrol.wait;" ::: "memory")
#else
#define LAUNCH_NEXT() static_cast<void>(0)
#define WAIT_FOR_KERNEL_BEFORE() static_cast<void>(0)
#endif
#define LAUNCH_NEXT_AND_WAIT() \
  LAUNCH_NEXT();               \
  WAIT_FOR_KERNEL_BEFORE()
// clang-format on
