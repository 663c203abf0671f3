#pragma once

#include <cstddef>
#include <span>

namespace hearth::backend::gpu::cuda {

/// The kernels compiled for every supported card, as the driver loads them; empty in a build
/// without nvcc.
std::span<const std::byte> kernel_fatbin();

}  // namespace hearth::backend::gpu::cuda
