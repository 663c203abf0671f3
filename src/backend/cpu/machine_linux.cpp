#include <algorithm>
#include <cmath>
#include <fstream>

#include <sched.h>
#include <unistd.h>

#include "backend/cpu/machine.h"

namespace hearth::backend::cpu {
namespace {

/// Cores in the affinity mask. (std::thread::hardware_concurrency counts all of the machine with
/// glibc 2.36.)
int cores_in_mask() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  return sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : 1;
}

/// CPU quota of this process's cgroup in cores (version 2: "<quota> <period>" or "max <period>");
/// 0: none.
double cgroup_quota() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  double quota = 0;  // "max" fails to parse
  double period = 0;
  return file >> quota >> period && period > 0 ? quota / period : 0;
}

/// Memory limit of this process's cgroup in bytes (version 2: a number or "max"); 0: none.
std::int64_t cgroup_memory() {
  std::ifstream file("/sys/fs/cgroup/memory.max");
  std::int64_t bytes = 0;  // "max" fails to parse
  return file >> bytes ? bytes : 0;
}

}  // namespace

int available_cores() {
  const int cores = std::max(1, cores_in_mask());
  const double quota = cgroup_quota();
  return quota > 0 ? std::clamp(static_cast<int>(std::floor(quota)), 1, cores) : cores;
}

std::int64_t available_memory() {
  const std::int64_t bytes = std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  const std::int64_t limit = cgroup_memory();
  return limit > 0 ? std::min(limit, bytes) : bytes;
}

}  // namespace hearth::backend::cpu
