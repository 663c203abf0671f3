#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "engine/selftest/probes.h"

namespace hearth::engine {

/// What came of a probe.
struct ProbeOutcome {
  enum class Kind { same_bits, differs, refused, failed };

  Kind kind{};
  std::string message;                // why it was refused, or how it failed
  double largest_error = 0;           // of the largest value that the reference gives
  std::vector<std::string> kernels;   // that ran, each once
  std::optional<double> bytes_per_s;  // that a step of one row reads and writes
};

/// Runs a probe on a backend and on the reference, for prompts and for single rows, and compares
/// every bit. With `timed`, the same operation at a real model's size also shows its speed.
ProbeOutcome run_probe(const ProbeKind& kind, backend::Backend& backend, bool timed);

}  // namespace hearth::engine
