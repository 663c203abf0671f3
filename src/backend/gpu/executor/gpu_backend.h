#pragma once

#include <memory>

#include "backend/backend.h"
#include "backend/gpu/executor/device_owner.h"

namespace hearth::backend {

/// The GPU backend on a device of its own. Bit-equal with the reference backend for every batch and
/// chunking (docs/adr/0010). Unsupported types and shapes are refused when a plan is compiled.
std::unique_ptr<Backend> make_gpu_backend(std::unique_ptr<gpu::Device> device);

/// The same, with a device that can be opened anew after it was lost. Errors: the opener's.
Result<std::unique_ptr<Backend>> make_gpu_backend(gpu::DeviceOpener opener);

/// The GPU backend on an NVIDIA card. Errors: those of gpu::cuda::open_cuda_device().
Result<std::unique_ptr<Backend>> make_cuda_backend(int ordinal);
/// The GPU backend on this Mac's GPU. Errors: those of gpu::metal::open_metal_device().
Result<std::unique_ptr<Backend>> make_metal_backend();

}  // namespace hearth::backend
