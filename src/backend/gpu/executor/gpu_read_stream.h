#pragma once

#include <memory>

#include "backend/backend.h"
#include "backend/gpu/host/device.h"

namespace hearth::backend::gpu {

/// How fast a device reads its memory. `device` must outlive it. Errors: out_of_memory.
Result<std::unique_ptr<ReadStream>> make_read_stream(Device& device);

}  // namespace hearth::backend::gpu
