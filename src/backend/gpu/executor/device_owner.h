#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "backend/gpu/host/device.h"

namespace hearth::backend::gpu {

/// Opens a device, the first time or after it was lost.
using DeviceOpener = std::function<Result<std::unique_ptr<Device>>()>;

/// The device of a backend and all who have something on it. A lost device is closed once they have
/// let go, and opened anew; what was on it is theirs to bring back.
class DeviceOwner {
 public:
  /// Somebody with memory or commands on the device; stays where it is, and ends before the owner.
  class Tenant {
   public:
    Tenant(const Tenant&) = delete;
    Tenant& operator=(const Tenant&) = delete;

    /// Gives up everything on the device, which is lost.
    virtual void let_go() = 0;

   protected:
    explicit Tenant(DeviceOwner& owner) : owner_(owner) { owner.tenants_.push_back(this); }
    ~Tenant() { std::erase(owner_.tenants_, this); }

    DeviceOwner& owner_;
  };

  DeviceOwner(std::unique_ptr<Device> device, DeviceOpener opener)
      : opener_(std::move(opener)),
        capabilities_(device->capabilities()),
        device_(std::move(device)) {}

  /// Opens the device anew if it is lost. Errors: the opener's; the next call tries again.
  Result<void> make_ready();

  /// After make_ready() only.
  [[nodiscard]] Device& device() { return *device_; }
  /// Also while there is no device.
  [[nodiscard]] const Capabilities& capabilities() const { return capabilities_; }
  [[nodiscard]] std::uint64_t free_bytes() const {
    return device_ == nullptr ? 0 : device_->free_bytes();
  }

 private:
  DeviceOpener opener_;
  Capabilities capabilities_;
  std::unique_ptr<Device> device_;  // null while a lost one could not be opened anew
  std::vector<Tenant*> tenants_;
};

}  // namespace hearth::backend::gpu
