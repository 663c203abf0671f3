#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "backend/gpu/executor/device_owner.h"
#include "backend/gpu/executor/recorder.h"
#include "backend/gpu/executor/session_memory.h"

namespace hearth::backend::gpu {

/// A plan as commands of a device.
class GpuExecutable final : public Executable, private StepQueue, private DeviceOwner::Tenant {
 public:
  /// Errors: unsupported for what has no kernel; out_of_memory.
  static Result<std::unique_ptr<GpuExecutable>> create(const plan::Plan& plan,
                                                       SessionMemory& memory);
  ~GpuExecutable() override;
  GpuExecutable(const GpuExecutable&) = delete;
  GpuExecutable& operator=(const GpuExecutable&) = delete;

  Result<std::span<const float>> run(const graph::StepView& step) override;
  [[nodiscard]] StepQueue* queue() override { return copies_result() ? this : nullptr; }
  [[nodiscard]] std::vector<std::string_view> kernels() const override { return kernels_; }

 private:
  /// What lies on the device for one of two steps that are under way.
  struct Recording {
    std::shared_ptr<StepMemory> step;
    std::shared_ptr<Buffer> tables;
    BufferPart device_result;
    std::shared_ptr<Buffer> host_result;
    std::unique_ptr<PreparedCommands> commands;
  };
  struct Started {
    std::size_t turn;
    Ticket ticket;
    std::size_t n_numbers;  // of the result
  };

  GpuExecutable(const plan::Plan& plan, SessionMemory& memory);

  Result<void> start(const graph::StepView& step) override;
  Result<std::span<const float>> finish() override;
  void let_go() override;

  /// Takes memory and records the plan.
  Result<void> place(std::size_t turn);
  /// Records the plan where everything lies now.
  Result<void> prepare(Recording& recording);
  /// Returns the scratch memory that the launches need.
  Result<std::int64_t> record(CommandList& list, Recording& recording) const;
  [[nodiscard]] const graph::ValueDesc& result() const {
    return plan_.values[graph::index(plan_.result)];
  }
  /// Whether the commands themselves end with copying the result.
  [[nodiscard]] bool copies_result() const;

  plan::Plan plan_;
  SessionMemory& memory_;
  std::vector<std::string_view> kernels_;
  // Gone with a lost device.
  std::array<std::optional<Recording>, 2> recordings_;  // the second for who starts ahead
  std::shared_ptr<Buffer> chosen_;                      // by argmax, in the last step
  std::vector<Started> started_;                        // at most two
};

}  // namespace hearth::backend::gpu
