#include "devices.h"

#include <algorithm>
#include <array>
#include <utility>

#include "backend/gpu/emulator/emulator_device.h"
#include "backend/gpu/executor/gpu_backend.h"
#include "backend/reference/reference_backend.h"
#include "base/assert.h"
#include "base/format.h"

namespace hearth::app {
namespace {

using BackendResult = Result<std::unique_ptr<backend::Backend>>;

struct Device {
  const char* name;
  BackendResult (*open)(const backend::CpuOptions& cpu);
};

constexpr std::array devices{
    Device{"cpu", [](const backend::CpuOptions& cpu) { return backend::make_cpu_backend(cpu); }},
    Device{"cuda", [](const backend::CpuOptions&) { return backend::make_cuda_backend(0); }},
    Device{"emulator",
           [](const backend::CpuOptions& cpu) -> BackendResult {
             return backend::make_gpu_backend(backend::gpu::emulator::open_emulator_device(
                 {.n_workers = std::max(cpu.n_threads, 1)}));
           }},
    Device{"metal", [](const backend::CpuOptions&) { return backend::make_metal_backend(); }},
    Device{"reference",
           [](const backend::CpuOptions&) -> BackendResult {
             return backend::make_reference_backend();
           }},
};

/// What `auto` tries before the processor: no system has both.
struct Gpu {
  BackendResult (*open)();
  const char* description;
};

constexpr std::array gpus{
#ifdef __APPLE__
    Gpu{backend::make_metal_backend, "this Mac's GPU"},
#else
    Gpu{[] { return backend::make_cuda_backend(0); }, "the first card that the NVIDIA driver sees"},
#endif
};

/// A GPU that can run these weights.
BackendResult open_for(const graph::WeightTable& weights, const Gpu& gpu) {
  HEARTH_ASSIGN(auto backend, gpu.open());
  HEARTH_TRY(backend->check(weights));
  return backend;
}

}  // namespace

std::vector<std::string> device_names() {
  std::vector<std::string> names{"auto"};
  for (const auto& device : devices) {
    names.emplace_back(device.name);
  }
  return names;
}

Result<ChosenDevice> open_device(const std::string& name, const backend::CpuOptions& cpu,
                                 const graph::WeightTable& weights) {
  if (name != "auto") {
    const auto* found = std::ranges::find(devices, name, &Device::name);
    HEARTH_ASSERT(found != devices.end());  // the parser has checked the name
    HEARTH_ASSIGN(auto backend, found->open(cpu));
    return ChosenDevice{std::move(backend), ""};
  }
  std::string why_none;
  for (const Gpu& gpu : gpus) {
    auto backend = open_for(weights, gpu);
    if (backend) {
      return ChosenDevice{std::move(*backend), gpu.description};
    }
    why_none += format("{}{}", why_none.empty() ? "no GPU: " : "; ", backend.error().message);
  }
  HEARTH_ASSIGN(auto backend, backend::make_cpu_backend(cpu));
  return ChosenDevice{std::move(backend), why_none};
}

}  // namespace hearth::app
