#pragma once
/// A CUDA driver without a card: its memory is the host's, and its kernels run in the emulator. It
/// shows that calls come in the right order with the right arguments; a call with a handle that was
/// never given out, or was given back, is a failure of the test.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/gpu/cuda/driver_api.h"
#include "backend/gpu/emulator/emulator.h"

namespace hearth::backend::gpu::cuda {

/// Work of a graph, in order.
using FakeGraph = std::vector<std::function<Status()>>;

/// What the driver is asked to do wrong, and what it has seen. One at a time.
struct FakeDriver {
  FakeDriver();
  ~FakeDriver();
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  [[nodiscard]] static DriverApi api();

  int n_devices = 1;
  std::size_t memory_bytes = 1 << 20;
  Status load_status = Status::success;    // of load_module
  Status launch_status = Status::success;  // of every launch
  int n_busy_queries = 0;                  // so often events are not ready

  // Handles and memory in use.
  int n_contexts = 0;
  int n_modules = 0;
  int n_streams = 0;
  int n_events = 0;
  std::map<Address, std::vector<std::byte>> memory;
  std::map<Address, std::vector<std::byte>> host_memory;
  std::optional<FakeGraph> captured;  // so far, while a stream is captured
  FakeGraph graph;                    // captured last
  std::vector<std::unique_ptr<FakeGraph>> graphs;
  std::vector<std::string> launched;  // kernels, in order
  emulator::Emulator emulator{{}};
};

}  // namespace hearth::backend::gpu::cuda
