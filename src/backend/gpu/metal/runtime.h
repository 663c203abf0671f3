#pragma once
/// The Objective-C runtime through its functions, and the one function of Metal that is not a
/// message. Loaded at run time: nothing of Apple's is needed to build, the same code compiles
/// everywhere, and tests put a runtime of their own in its place.
/// Sources: Apple, "Objective-C Runtime" and "MTLCreateSystemDefaultDevice"; the functions of
/// reference counts and pools: clang, "Objective-C Automatic Reference Counting", runtime support.

#include <span>
#include <string_view>

#include "base/result.h"

namespace hearth::backend::gpu::metal {

using Object = struct ObjectTag*;      // id, and Class
using Selector = struct SelectorTag*;  // SEL
/// Code of a method, to be cast to its exact type before it is called: arm64 passes arguments of
/// variadic functions elsewhere.
using Method = void (*)();

/// The functions by their names in the library: symbol, name here, result, parameters.
#define HEARTH_OBJC_FUNCTIONS(X)                                   \
  X(objc_getClass, find_class, Object, (const char* name))         \
  X(sel_registerName, find_selector, Selector, (const char* name)) \
  X(objc_msgSend, send, void, ())                                  \
  X(objc_retain, retain, Object, (Object object))                  \
  X(objc_release, release, void, (Object object))                  \
  X(objc_autoreleasePoolPush, push_pool, void*, ())                \
  X(objc_autoreleasePoolPop, pop_pool, void, (void* pool))         \
  X(MTLCreateSystemDefaultDevice, create_system_default_device, Object, ())

/// The runtime as a table of functions; tests fill in their own.
struct Runtime {
#define HEARTH_OBJC_MEMBER(symbol, name, result, parameters) result(*name) parameters = nullptr;
  HEARTH_OBJC_FUNCTIONS(HEARTH_OBJC_MEMBER)
#undef HEARTH_OBJC_MEMBER

  /// The method that a message runs, by receiver, selector and types (messages.h). Null on a Mac,
  /// where `send` finds it.
  Method (*find_method)(Object receiver, Selector selector,
                        std::span<const std::string_view> types) = nullptr;
};

/// Loads Metal, and with it the runtime. It stays loaded until the program ends.
/// Errors: unsupported, with one sentence for people: no Metal here, or one that is too old.
Result<Runtime> load_runtime();

}  // namespace hearth::backend::gpu::metal
