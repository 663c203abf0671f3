#include "backend/gpu/metal/metal_buffer.h"

#include <utility>

#include "base/assert.h"

namespace hearth::backend::gpu::metal {

MetalBuffer::MetalBuffer(std::shared_ptr<Driver> driver, Owned buffer, std::span<std::byte> memory,
                         std::uint64_t counted_bytes, std::string_view label)
    : driver_(std::move(driver)),
      buffer_(std::move(buffer)),
      memory_(memory),
      counted_bytes_(counted_bytes),
      label_(label) {
  const Pool pool(driver_->runtime());
  driver_->messages().set_label(object(), driver_->to_string(label_));
  driver_->keep_resident(object());
  driver_->allocated_bytes += counted_bytes_;
}

MetalBuffer::~MetalBuffer() {
  const Pool pool(driver_->runtime());
  driver_->let_go(object());
  driver_->allocated_bytes -= counted_bytes_;
  buffer_ = {};
}

AddressRange MetalBuffer::addresses() const {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory_.data());
  return {begin, begin + memory_.size()};
}

Object metal_buffer(const BufferPart& part) {
  const auto* buffer = dynamic_cast<const MetalBuffer*>(part.buffer.get());
  HEARTH_ASSERT(buffer != nullptr);  // of this device
  return buffer->object();
}

}  // namespace hearth::backend::gpu::metal
