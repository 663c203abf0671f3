#pragma once
/// What the machine lets this process use.

#include <cstdint>
#include <vector>

namespace hearth::backend::cpu {

/// Cores: affinity mask and cgroup quota, at least 1.
int available_cores();

/// Speeds of those cores of the affinity mask that are meant to compute, as in core_speeds.h; at
/// least one.
std::vector<double> core_speeds();

/// Bytes of memory: the machine's, or the cgroup's limit if that is less.
std::int64_t available_memory();

}  // namespace hearth::backend::cpu
