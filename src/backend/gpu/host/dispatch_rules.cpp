#include "backend/gpu/host/dispatch_rules.h"

#include <algorithm>

#include "base/fail.h"

namespace hearth::backend::gpu {
namespace {

Result<void> check_buffers(const KernelInfo& kernel, std::span<const AddressRange> buffers) {
  if (buffers.size() != kernel.n_buffers) {
    return fail(ErrorCode::invalid_argument, "kernel '{}': has {} buffers, {} were given",
                kernel.name, kernel.n_buffers, buffers.size());
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const BufferInfo& first = kernel.buffer_list[j];
      const BufferInfo& second = kernel.buffer_list[i];
      if ((first.written || second.written) && buffers[j].overlaps(buffers[i])) {
        return fail(ErrorCode::invalid_argument,
                    "kernel '{}': buffers '{}' and '{}' overlap, and '{}' is written", kernel.name,
                    first.name, second.name, first.written ? first.name : second.name);
      }
    }
  }
  return {};
}

}  // namespace

Result<void> check_dispatch(const KernelInfo& kernel, std::span<const AddressRange> buffers,
                            std::size_t param_bytes, Dim3 grid, Dim3 group_size) {
  HEARTH_TRY(check_buffers(kernel, buffers));
  if (param_bytes != kernel.param_bytes) {
    return fail(ErrorCode::invalid_argument,
                "kernel '{}': has {} bytes of parameters, {} were given", kernel.name,
                kernel.param_bytes, param_bytes);
  }
  const std::uint64_t n_threads = group_size.count();
  // Each dimension too, or a product of large ones might wrap around to a small number.
  const std::uint32_t largest = std::max({group_size.x, group_size.y, group_size.z});
  if (largest > kernel.max_threads || n_threads == 0 || n_threads % simdgroup_lanes != 0 ||
      n_threads > kernel.max_threads) {
    return fail(ErrorCode::invalid_argument,
                "kernel '{}': a threadgroup of {} threads, expected a multiple of {}, at most {}",
                kernel.name, n_threads, simdgroup_lanes, kernel.max_threads);
  }
  if (grid.x == 0 || grid.x > max_grid_x || grid.y == 0 || grid.y > max_grid_yz || grid.z == 0 ||
      grid.z > max_grid_yz) {
    return fail(ErrorCode::invalid_argument,
                "kernel '{}': a grid of {} x {} x {} threadgroups, expected 1 to {} x {} x {}",
                kernel.name, grid.x, grid.y, grid.z, max_grid_x, max_grid_yz, max_grid_yz);
  }
  return {};
}

}  // namespace hearth::backend::gpu
