#pragma once

#include <memory>
#include <string>

#include "backend/gpu/host/command_list.h"
#include "backend/gpu/metal/driver.h"

namespace hearth::backend::gpu::metal {

/// Memory that processor and GPU share.
class MetalBuffer final : public Buffer {
 public:
  /// `memory` is what the buffer was made for, `counted_bytes` what it adds to the driver's.
  MetalBuffer(std::shared_ptr<Driver> driver, Owned buffer, std::span<std::byte> memory,
              std::uint64_t counted_bytes, std::string_view label);
  ~MetalBuffer() override;
  MetalBuffer(const MetalBuffer&) = delete;
  MetalBuffer& operator=(const MetalBuffer&) = delete;

  [[nodiscard]] std::string_view label() const override { return label_; }
  [[nodiscard]] AddressRange addresses() const override;
  [[nodiscard]] std::span<std::byte> host() override { return memory_; }
  [[nodiscard]] Object object() const { return buffer_.get(); }

 private:
  std::shared_ptr<Driver> driver_;
  Owned buffer_;
  std::span<std::byte> memory_;
  std::uint64_t counted_bytes_;
  std::string label_;
};

/// Metal's object behind a part of a buffer of this device.
Object metal_buffer(const BufferPart& part);

}  // namespace hearth::backend::gpu::metal
