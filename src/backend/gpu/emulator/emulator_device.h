#pragma once

#include <memory>
#include <optional>

#include "backend/gpu/host/device.h"

namespace hearth::backend::gpu::emulator {

struct EmulatorDeviceOptions {
  int n_workers = 1;
  /// As in EmulatorOptions; it also permutes the commands between two barriers.
  std::uint64_t seed = 0;
  /// Allocations beyond it fail.
  std::uint64_t memory_bytes = std::uint64_t{1} << 40;
  /// The submission of this number, counted from 0, fails with an injected error; with
  /// `loses_device` the device is lost with it. For tests of recovery.
  std::optional<std::int64_t> failing_submission;
  bool loses_device = false;
  bool has_integer_tiles = true;  // as Capabilities says
  /// Work is done as late as a device may: when somebody waits for it, or transfers data. Otherwise
  /// when submit() returns.
  bool is_late = false;
};

/// The emulator as a device. What goes wrong in submitted work comes from wait().
/// New memory is filled with bytes 0xff, NaN in every float format.
std::unique_ptr<Device> open_emulator_device(const EmulatorDeviceOptions& options);

}  // namespace hearth::backend::gpu::emulator
