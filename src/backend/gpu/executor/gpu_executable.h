#pragma once

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
class GpuExecutable final : public Executable, private DeviceOwner::Tenant {
 public:
  /// Errors: unsupported for what has no kernel; out_of_memory.
  static Result<std::unique_ptr<GpuExecutable>> create(const plan::Plan& plan,
                                                       SessionMemory& memory);

  Result<std::span<const float>> run(const graph::StepView& step) override;
  [[nodiscard]] std::vector<std::string_view> kernels() const override { return kernels_; }

 private:
  /// What lies on the device for it; gone with a lost device.
  struct Recording {
    std::shared_ptr<StepMemory> step;
    std::shared_ptr<Buffer> tables;
    BufferPart device_result;
    std::shared_ptr<Buffer> host_result;
    std::unique_ptr<PreparedCommands> commands;
  };

  GpuExecutable(const plan::Plan& plan, SessionMemory& memory)
      : Tenant(memory.owner()), plan_(plan), memory_(memory) {}

  void let_go() override { recording_.reset(); }
  /// Takes memory and records the plan.
  Result<void> place();
  /// Records the plan where everything lies now.
  Result<void> prepare();
  Result<std::int64_t> record(CommandList& list);
  [[nodiscard]] const graph::ValueDesc& result() const {
    return plan_.values[graph::index(plan_.result)];
  }
  /// Whether the commands themselves end with copying the result.
  [[nodiscard]] bool copies_result() const;

  plan::Plan plan_;
  SessionMemory& memory_;
  std::vector<std::string_view> kernels_;
  std::optional<Recording> recording_;
};

}  // namespace hearth::backend::gpu
