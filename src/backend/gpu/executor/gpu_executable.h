#pragma once

#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/gpu/executor/recorder.h"

namespace hearth::backend::gpu {

/// What the executables of a session share.
struct SessionMemory {
  Device& device;
  const graph::WeightTable& weights;
  DeviceWeights device_weights;
  DeviceCaches caches;
  BlockTables tables;
  std::shared_ptr<Buffer> arena;    // these three only grow; executables keep those that they were
  std::shared_ptr<Buffer> scratch;  // recorded with
  std::shared_ptr<Buffer> logits;   // in memory of the host
  std::int64_t step_bytes = 0;      // of all executables
};

/// A plan as commands of a device.
class GpuExecutable final : public Executable {
 public:
  /// Errors: unsupported for what has no kernel; out_of_memory.
  static Result<std::unique_ptr<GpuExecutable>> create(const plan::Plan& plan,
                                                       SessionMemory& memory);

  Result<std::span<const float>> run(const graph::StepView& step) override;

 private:
  GpuExecutable(const plan::Plan& plan, SessionMemory& memory, StepMemory step)
      : plan_(plan), memory_(memory), step_(std::move(step)) {}

  /// Records the plan where everything lies now.
  Result<void> prepare();
  Result<std::int64_t> record(CommandList& list);

  plan::Plan plan_;
  SessionMemory& memory_;
  StepMemory step_;
  std::shared_ptr<Buffer> recorded_tables_;
  BufferPart device_logits_;
  std::shared_ptr<Buffer> host_logits_;
  std::unique_ptr<PreparedCommands> commands_;
};

}  // namespace hearth::backend::gpu
