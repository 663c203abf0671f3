#pragma once
/// Which backend computes: the option --device.

#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/cpu_backend.h"
#include "graph/value.h"

namespace hearth::app {

/// What --device may be: auto, then the names of devices.
std::vector<std::string> device_names();

struct ChosenDevice {
  std::unique_ptr<backend::Backend> backend;
  std::string reason;  // why `auto` chose it; empty where the user did
};

/// Opens the device of that name; `auto` takes an NVIDIA card that can run these weights, and the
/// processor otherwise. Errors: those of the device asked for.
Result<ChosenDevice> open_device(const std::string& name, const backend::CpuOptions& cpu,
                                 const graph::WeightTable& weights);

}  // namespace hearth::app
