#pragma once

#include <memory>
#include <string>

#include "backend/gpu/host/device.h"
#include "backend/gpu/metal/runtime.h"

namespace hearth::backend::gpu::metal {

/// Opens the GPU of this Mac and compiles the kernels of this build for it.
/// Errors: unsupported, with one sentence for people: no Metal, no GPU, an old one, or kernels that
/// Metal's compiler refuses, with what it says; internal when the GPU does no work.
Result<std::unique_ptr<Device>> open_metal_device();

/// The same with a runtime and a library's source of the caller's.
Result<std::unique_ptr<Device>> open_metal_device(const Runtime& runtime,
                                                  const std::string& source);

}  // namespace hearth::backend::gpu::metal
