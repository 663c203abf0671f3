#include "backend/gpu/cuda/driver_api.h"

#include <dlfcn.h>

#include "base/fail.h"

namespace hearth::backend::gpu::cuda {
namespace {

constexpr const char* library_name = "libcuda.so.1";

/// Sets one member of the table from the library.
template <class Pointer>
Result<void> find(void* library, const char* symbol, Pointer& pointer) {
  pointer = reinterpret_cast<Pointer>(::dlsym(library, symbol));
  if (pointer == nullptr) {
    return fail(ErrorCode::unsupported, "the NVIDIA driver is too old: {} has no {}", library_name,
                symbol);
  }
  return {};
}

}  // namespace

Result<DriverApi> load_driver_api() {
  void* library = ::dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return fail(ErrorCode::unsupported, "no NVIDIA driver on this machine: {} cannot be loaded",
                library_name);
  }
  DriverApi api;
#define HEARTH_CUDA_FIND(symbol, name, parameters) HEARTH_TRY(find(library, #symbol, api.name));
  HEARTH_CUDA_FUNCTIONS(HEARTH_CUDA_FIND)
#undef HEARTH_CUDA_FIND
  return api;
}

}  // namespace hearth::backend::gpu::cuda
