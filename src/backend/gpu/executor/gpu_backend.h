#pragma once

#include <memory>

#include "backend/backend.h"
#include "backend/gpu/host/device.h"

namespace hearth::backend {

/// The GPU backend on a device of its own. Bit-equal with the reference backend for every batch and
/// chunking (docs/adr/0010). Unsupported types and shapes are refused when a plan is compiled.
std::unique_ptr<Backend> make_gpu_backend(std::unique_ptr<gpu::Device> device);

/// The GPU backend on an NVIDIA card. Errors: those of gpu::cuda::open_cuda_device().
Result<std::unique_ptr<Backend>> make_cuda_backend(int ordinal);

}  // namespace hearth::backend
