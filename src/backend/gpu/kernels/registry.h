#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "backend/gpu/emulator/emulated_kernel.h"
#include "backend/gpu/host/kernel_info.h"
#include "backend/gpu/kernels/all_kernels.h"

namespace hearth::backend::gpu {

enum class KernelId : std::uint8_t {
#define HEARTH_KERNEL_ID(name) name,
  HEARTH_GPU_KERNELS(HEARTH_KERNEL_ID)
#undef HEARTH_KERNEL_ID
};

/// What a caller has to know of a kernel, the same for every device.
const KernelInfo& kernel_info(KernelId id);

/// The kernel of that name, if there is one.
std::optional<KernelId> find_kernel(std::string_view name);

/// All kernels in the order of their ids, and as the emulator runs them.
std::span<const emulator::EmulatedKernel* const> all_kernels();

}  // namespace hearth::backend::gpu
