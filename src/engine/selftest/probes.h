#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/selftest/probe.h"

namespace hearth::engine {

/// An operation to try, by name: "product Q4_K".
struct ProbeKind {
  std::string name;
  std::function<void(Probe&)> build;  // embedding and layers
};

/// Products and embeddings of every type of weights, attention with every type of cache, recurrent
/// layers, experts, and what stands between them.
std::vector<ProbeKind> all_probes();

}  // namespace hearth::engine
