#pragma once

#include <memory>

#include "backend/cpu/cpu_backend.h"
#include "tests/backend/gpu/backend_under_test.h"

namespace hearth::engine {

/// What the engine's tests compute with: the processor, or with HEARTH_TEST_GPU=cuda in the
/// environment a card, which has to give the same bits. One thread, unless a test is about threads:
/// ctest keeps all cores busy, and threads that wait for one another there take ten times as long.
inline std::unique_ptr<backend::Backend> engine_backend(int n_threads) {
  return backend::is_on_card() ? *backend::make_cuda_backend(0)
                               : *backend::make_cpu_backend({.n_threads = n_threads});
}

}  // namespace hearth::engine
