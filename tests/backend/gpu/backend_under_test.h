#pragma once
/// The GPU backend of a test.

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "backend/gpu/emulator/emulator_device.h"
#include "backend/gpu/executor/gpu_backend.h"

namespace hearth::backend {

/// Whether tests run on a card, with HEARTH_TEST_GPU=cuda in the environment, or in the emulator.
inline bool is_on_card() {
  const char* wanted = std::getenv("HEARTH_TEST_GPU");
  return wanted != nullptr && std::string(wanted) == "cuda";
}

inline std::unique_ptr<Backend> gpu_backend(std::uint64_t seed = 0) {
  return is_on_card() ? make_cuda_backend(0).value()
                      : make_gpu_backend(gpu::emulator::open_emulator_device({.seed = seed}));
}

}  // namespace hearth::backend
