#pragma once

#include <cstdint>
#include <string>

#include "backend/backend.h"
#include "engine/runner.h"

namespace hearth::engine {

/// For the message of an engine that does not fit: the free bytes of the device and the longest
/// contexts of `n_sequences` that they hold beside the rest, by type of keys and values.
std::string what_fits(const model::Model& model, const backend::Backend& backend,
                      const RunnerOptions& options, std::int64_t n_sequences);

}  // namespace hearth::engine
