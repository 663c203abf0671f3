#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "backend/gpu/cuda/driver_api.h"
#include "backend/gpu/host/device.h"

namespace hearth::backend::gpu::cuda {

/// Opens a card of this machine with the kernels of this build.
/// Errors: unsupported, with one sentence for people: built without CUDA kernels, no driver, an old
/// driver, no such card, a card for which no kernels were compiled; internal for what else the
/// driver says.
Result<std::unique_ptr<Device>> open_cuda_device(int ordinal);

/// The same with a driver and kernels of the caller's.
Result<std::unique_ptr<Device>> open_cuda_device(const DriverApi& api,
                                                 std::span<const std::byte> fatbin, int ordinal);

}  // namespace hearth::backend::gpu::cuda
