#include "backend/gpu/kernels/registry.h"

#include <array>

namespace hearth::backend::gpu {

#define HEARTH_DECLARE_KERNEL(name) extern const emulator::EmulatedKernel name##_emulated;
HEARTH_GPU_KERNELS(HEARTH_DECLARE_KERNEL)
#undef HEARTH_DECLARE_KERNEL

namespace {

constexpr std::array kernels{
#define HEARTH_KERNEL_ENTRY(name) &name##_emulated,
    HEARTH_GPU_KERNELS(HEARTH_KERNEL_ENTRY)
#undef HEARTH_KERNEL_ENTRY
};

}  // namespace

const KernelInfo& kernel_info(KernelId id) {
  return kernels[static_cast<std::size_t>(id)]->info;
}

std::optional<KernelId> find_kernel(std::string_view name) {
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (kernels[i]->info.name == name) {
      return static_cast<KernelId>(i);
    }
  }
  return std::nullopt;
}

std::span<const emulator::EmulatedKernel* const> all_kernels() {
  return kernels;
}

}  // namespace hearth::backend::gpu
