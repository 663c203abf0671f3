#pragma once
/// What the machine lets this process use.

#include <cstdint>

namespace hearth::backend::cpu {

/// Cores: affinity mask and cgroup quota, at least 1.
int available_cores();

/// Bytes of memory: the machine's, or the cgroup's limit if that is less.
std::int64_t available_memory();

}  // namespace hearth::backend::cpu
