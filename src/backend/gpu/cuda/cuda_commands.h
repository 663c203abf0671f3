#pragma once

#include <memory>
#include <vector>

#include "backend/gpu/cuda/driver.h"
#include "backend/gpu/host/device.h"

namespace hearth::backend::gpu::cuda {

/// A command list as a graph of the driver, which replays it in one call.
class CudaCommands final : public PreparedCommands {
 public:
  /// `functions` are those of the list's dispatches, in order. Errors: internal for what the driver
  /// says.
  static Result<std::unique_ptr<CudaCommands>> record(std::shared_ptr<Driver> driver,
                                                      const CommandList& list, CommandCounts counts,
                                                      const std::vector<Function>& functions);
  ~CudaCommands() override;
  CudaCommands(const CudaCommands&) = delete;
  CudaCommands& operator=(const CudaCommands&) = delete;

  [[nodiscard]] CommandCounts counts() const override { return counts_; }
  [[nodiscard]] GraphExec graph() const { return graph_; }

 private:
  CudaCommands(std::shared_ptr<Driver> driver, CommandList list, CommandCounts counts)
      : driver_(std::move(driver)), list_(std::move(list)), counts_(counts) {}

  std::shared_ptr<Driver> driver_;
  CommandList list_;  // keeps its buffers alive
  CommandCounts counts_;
  GraphExec graph_ = nullptr;
};

}  // namespace hearth::backend::gpu::cuda
