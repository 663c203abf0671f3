#pragma once

#include <memory>

#include "backend/backend.h"
#include "backend/gpu/executor/device_owner.h"

namespace hearth::backend::gpu {

/// How fast a device reads its memory; it is ready. `owner` must outlive the stream. Errors:
/// out_of_memory.
Result<std::unique_ptr<ReadStream>> make_read_stream(DeviceOwner& owner);

}  // namespace hearth::backend::gpu
