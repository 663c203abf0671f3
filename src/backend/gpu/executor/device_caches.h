#pragma once

#include <cstdint>
#include <vector>

#include "backend/gpu/host/device.h"
#include "graph/caches.h"

namespace hearth::backend::gpu {

/// What a session keeps from step to step, in a device's memory. Layouts: kernels/attention.h,
/// kernels/delta_rule.h, kernels/causal_conv.h.
class DeviceCaches {
 public:
  /// `descs` have passed check(). Errors: out_of_memory.
  static Result<DeviceCaches> create(Device& device, const graph::CacheDescs& descs);

  [[nodiscard]] const graph::CacheDescs& descs() const { return descs_; }

  /// Keys and values of an attention layer: [block][kv head] panels each.
  [[nodiscard]] const BufferPart& keys(std::int64_t layer) const {
    return keys_[static_cast<std::size_t>(layer)];
  }
  [[nodiscard]] const BufferPart& values(std::int64_t layer) const {
    return values_[static_cast<std::size_t>(layer)];
  }
  /// Memory and ring of a recurrent layer in slot 0, and so on through the other slots.
  [[nodiscard]] const BufferPart& memory(std::int64_t layer) const {
    return memories_[static_cast<std::size_t>(layer)];
  }
  [[nodiscard]] const BufferPart& ring(std::int64_t layer) const {
    return rings_[static_cast<std::size_t>(layer)];
  }
  /// Floats from one slot to the next.
  [[nodiscard]] std::uint64_t slot_stride() const {
    return static_cast<std::uint64_t>(descs_.states.bytes_per_slot()) / sizeof(float);
  }
  [[nodiscard]] BufferPart slot(std::int64_t i) const {
    const std::uint64_t bytes = slot_stride() * sizeof(float);
    return {states_, static_cast<std::uint64_t>(i) * bytes, bytes};
  }
  /// [rows, features]
  [[nodiscard]] const BufferPart& rows() const { return rows_; }

 private:
  Result<void> create_kv(Device& device);
  Result<void> create_states(Device& device);

  graph::CacheDescs descs_;
  std::vector<BufferPart> keys_, values_;     // by layer
  std::vector<BufferPart> memories_, rings_;  // by layer
  std::shared_ptr<Buffer> states_;            // [slots][layers]; null for models without
  BufferPart rows_;
};

}  // namespace hearth::backend::gpu
