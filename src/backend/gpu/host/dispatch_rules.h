#pragma once
/// What every dispatch has to keep to, whatever runs it.

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/gpu/host/kernel_info.h"
#include "base/result.h"

namespace hearth::backend::gpu {

/// Bytes [begin, end) by address on the device.
struct AddressRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  bool operator==(const AddressRange&) const = default;
  [[nodiscard]] bool overlaps(const AddressRange& other) const {
    return begin < other.end && other.begin < end;
  }
};

/// Number of buffers, size of parameters, threadgroups of whole simdgroups, a grid that is not
/// empty; and no overlap of buffers of which one is written, because kernels assume that.
/// Errors: invalid_argument, which names the kernel, what was expected and what came.
Result<void> check_dispatch(const KernelInfo& kernel, std::span<const AddressRange> buffers,
                            std::size_t param_bytes, Dim3 grid, Dim3 group_size);

}  // namespace hearth::backend::gpu
