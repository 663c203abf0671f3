#pragma once

#include <cstdint>
#include <span>

#include "backend/gpu/host/device.h"
#include "graph/step.h"

namespace hearth::backend::gpu {

/// The block tables of a step's sequences on a device, [sequences, stride], kept from step to step:
/// only what has changed is copied.
class BlockTables {
 public:
  /// `stride` blocks are those of the longest possible sequence. Errors: out_of_memory.
  static Result<BlockTables> create(Device& device, std::int64_t stride);

  /// Starts copying the tables of a step. With more sequences than ever before it takes more
  /// memory, and part() is another afterwards. Errors: out_of_memory; internal when the device is
  /// lost.
  Result<void> update(Device& device, const graph::StepView& step);

  [[nodiscard]] const BufferPart& part() const { return part_; }
  [[nodiscard]] std::uint32_t stride() const { return static_cast<std::uint32_t>(stride_); }
  [[nodiscard]] std::int64_t bytes() const { return static_cast<std::int64_t>(part_.bytes); }

 private:
  Result<void> allocate(Device& device, std::int64_t n_sequences);
  [[nodiscard]] std::span<std::int32_t> host_table(std::int64_t sequence) const;

  std::int64_t stride_ = 0;
  std::int64_t capacity_ = 0;  // sequences
  BufferPart part_;
  std::shared_ptr<Buffer> host_;  // what the device has, or is about to have
};

}  // namespace hearth::backend::gpu
