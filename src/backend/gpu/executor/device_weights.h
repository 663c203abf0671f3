#pragma once

#include <cstdint>
#include <vector>

#include "backend/gpu/host/device.h"
#include "graph/value.h"

namespace hearth::backend::gpu {

/// A model's weights on a device: matrices of types that have tiles in tiles, where the device has
/// instructions for them (kernels/weight_tiles.h), all others as the file stores them.
class DeviceWeights {
 public:
  /// Uploads all of them. Weights that share their data in the file share it here. What becomes
  /// tiles passes through at most staging_bytes of the device, or one strip. Errors:
  /// out_of_memory; internal when the device failed.
  static Result<DeviceWeights> create(Device& device, const graph::WeightTable& weights,
                                      std::int64_t staging_bytes = 64 << 20);

  [[nodiscard]] const BufferPart& part(graph::WeightId id) const {
    return parts_[graph::index(id)];
  }
  [[nodiscard]] bool is_tiled(graph::WeightId id) const { return is_tiled_[graph::index(id)]; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  std::vector<BufferPart> parts_;  // by WeightId, in one buffer
  std::vector<bool> is_tiled_;     // by WeightId
  std::int64_t bytes_ = 0;
};

}  // namespace hearth::backend::gpu
