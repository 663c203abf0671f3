#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "backend/gpu/cuda/driver_api.h"

namespace hearth::backend::gpu::cuda {

/// A card in use: its context, the kernels loaded into it, one stream. Shared by the device and its
/// buffers, which may be freed after it.
class Driver {
 public:
  /// Errors: those of open_cuda_device().
  static Result<std::shared_ptr<Driver>> open(const DriverApi& api, const void* fatbin,
                                              int ordinal);
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  [[nodiscard]] const DriverApi& api() const { return api_; }
  [[nodiscard]] DeviceHandle device() const { return device_; }
  [[nodiscard]] Module module() const { return module_; }
  [[nodiscard]] Stream stream() const { return stream_; }
  /// Whether a kernel may be made ready while the one before it runs (compute capability 9.0 and
  /// up; dialect/cuda.h).
  [[nodiscard]] bool launches_early() const { return launches_early_; }

  /// Makes the context that of the calling thread, which every other call needs.
  void enter() const { api_.set_context(context_); }
  /// Success, or an `internal` error that says what was tried and what the driver answered.
  [[nodiscard]] Result<void> check(Status status, std::string_view tried) const;

  std::uint64_t allocated_bytes = 0;

 private:
  explicit Driver(const DriverApi& api) : api_(api) {}
  Result<void> start(const void* fatbin, int ordinal);
  Result<void> load(const void* fatbin);

  DriverApi api_;
  DeviceHandle device_ = 0;
  Context context_ = nullptr;
  Module module_ = nullptr;
  Stream stream_ = nullptr;
  bool launches_early_ = false;
};

}  // namespace hearth::backend::gpu::cuda
