#pragma once

#include <memory>

#include "backend/cpu/cpu_backend.h"
#include "tests/backend/gpu/backend_under_test.h"

namespace hearth::engine {

/// What the engine's tests compute with: the processor, or with HEARTH_TEST_GPU=cuda in the
/// environment a card, which has to give the same bits.
inline std::unique_ptr<backend::Backend> engine_backend(int n_threads) {
  return backend::is_on_card() ? *backend::make_cuda_backend(0)
                               : *backend::make_cpu_backend({.n_threads = n_threads});
}

}  // namespace hearth::engine
