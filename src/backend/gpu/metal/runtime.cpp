#include "backend/gpu/metal/runtime.h"

#include <dlfcn.h>

#include "base/fail.h"

namespace hearth::backend::gpu::metal {
namespace {

constexpr const char* library_name = "/System/Library/Frameworks/Metal.framework/Metal";
// A program without it may be told that there is no GPU: MTLCreateSystemDefaultDevice, Discussion.
constexpr const char* graphics_name =
    "/System/Library/Frameworks/CoreGraphics.framework/CoreGraphics";

/// Sets one member of the table from the library, or from one that it depends on.
template <class Pointer>
Result<void> find(void* library, const char* symbol, Pointer& pointer) {
  pointer = reinterpret_cast<Pointer>(::dlsym(library, symbol));
  if (pointer == nullptr) {
    return fail(ErrorCode::unsupported, "this macOS is too old: {} has no {}", library_name,
                symbol);
  }
  return {};
}

}  // namespace

Result<Runtime> load_runtime() {
  void* library = ::dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return fail(ErrorCode::unsupported, "no Metal on this machine: {} cannot be loaded",
                library_name);
  }
  ::dlopen(graphics_name, RTLD_NOW | RTLD_LOCAL);
  Runtime runtime;
#define HEARTH_OBJC_FIND(symbol, name, result, parameters) \
  HEARTH_TRY(find(library, #symbol, runtime.name));
  HEARTH_OBJC_FUNCTIONS(HEARTH_OBJC_FIND)
#undef HEARTH_OBJC_FIND
  return runtime;
}

}  // namespace hearth::backend::gpu::metal
