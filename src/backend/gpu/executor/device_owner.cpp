#include "backend/gpu/executor/device_owner.h"

namespace hearth::backend::gpu {

Result<void> DeviceOwner::make_ready() {
  if (device_ != nullptr && !device_->is_lost()) {
    return {};
  }
  for (Tenant* tenant : tenants_) {
    tenant->let_go();
  }
  device_.reset();  // first, so that its memory is free again
  HEARTH_ASSIGN(device_, opener_());
  capabilities_ = device_->capabilities();
  return {};
}

}  // namespace hearth::backend::gpu
