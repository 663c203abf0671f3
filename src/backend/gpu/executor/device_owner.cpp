#include "backend/gpu/executor/device_owner.h"

#include <utility>

#include "base/fail.h"

namespace hearth::backend::gpu {

Result<void> DeviceOwner::make_ready() {
  if (device_ != nullptr && !device_->is_lost()) {
    return {};
  }
  for (Tenant* tenant : tenants_) {
    tenant->let_go();
  }
  device_.reset();  // first, so that its memory is free again
  auto opened = opener_();
  if (!opened) {
    // NVIDIA's driver serves a program no more after a fault in a kernel.
    return fail(opened.error().code,
                "the device was lost, and opening it anew failed: {}; start the program again",
                opened.error().message);
  }
  device_ = *std::move(opened);
  capabilities_ = device_->capabilities();
  return {};
}

}  // namespace hearth::backend::gpu
