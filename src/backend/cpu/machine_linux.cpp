#include <algorithm>
#include <cmath>
#include <fstream>

#include <sched.h>
#include <unistd.h>

#include "backend/cpu/core_speeds.h"
#include "backend/cpu/machine.h"

namespace hearth::backend::cpu {
namespace {

/// The CPUs of the affinity mask. (std::thread::hardware_concurrency counts all of the machine with
/// glibc 2.36.)
std::vector<int> cpus_in_mask() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &mask)) {
        cpus.push_back(cpu);
      }
    }
  }
  return cpus.empty() ? std::vector{0} : cpus;
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
  const int cores = static_cast<int>(cpus_in_mask().size());
  const double quota = cgroup_quota();
  return quota > 0 ? std::clamp(static_cast<int>(std::floor(quota)), 1, cores) : cores;
}

std::vector<double> core_speeds() {
  return read_core_speeds("/sys/devices", cpus_in_mask());
}

std::int64_t available_memory() {
  const std::int64_t bytes = std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  const std::int64_t limit = cgroup_memory();
  return limit > 0 ? std::min(limit, bytes) : bytes;
}

}  // namespace hearth::backend::cpu
