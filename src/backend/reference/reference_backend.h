#pragma once

#include <memory>

#include "backend/backend.h"

namespace hearth::backend {

/// The definition of every result: runs the unfused ops one after another through their reference
/// kernels, on one thread, in plain loops. Slow on purpose; every other backend is tested against
/// it.
std::unique_ptr<Backend> make_reference_backend();

}  // namespace hearth::backend
