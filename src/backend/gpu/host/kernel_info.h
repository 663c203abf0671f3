#pragma once
/// What callers of a kernel have to know, derived from the kernel's own text.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace hearth::backend::gpu {

/// Metal has 31 buffer slots; the last takes the parameters.
inline constexpr std::size_t max_kernel_buffers = 30;
inline constexpr std::uint32_t simdgroup_lanes = 32;
// Threadgroups along x, and along y and z: CUDA's limits.
inline constexpr std::uint32_t max_grid_x = 0x7fffffff;
inline constexpr std::uint32_t max_grid_yz = 65535;
inline constexpr std::uint32_t shared_memory_bytes = 32768;  // of a threadgroup, on every target
inline constexpr std::uint32_t max_param_bytes = 4096;

struct BufferInfo {
  std::string_view name;
  bool written = false;  // not a pointer to const
};

struct KernelInfo {
  std::string_view name;
  std::uint32_t max_threads = 0;  // of a threadgroup
  std::uint32_t param_bytes = 0;
  std::uint32_t n_buffers = 0;
  std::array<BufferInfo, max_kernel_buffers> buffer_list{};

  [[nodiscard]] std::span<const BufferInfo> buffers() const {
    return {buffer_list.data(), n_buffers};
  }
};

/// A size or an index in up to three dimensions.
struct Dim3 {
  std::uint32_t x = 1;
  std::uint32_t y = 1;
  std::uint32_t z = 1;

  bool operator==(const Dim3&) const = default;
  [[nodiscard]] std::uint64_t count() const { return std::uint64_t{x} * y * z; }
};

}  // namespace hearth::backend::gpu
