#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <thread>

#include "backend/cpu/thread_pool.h"

namespace hearth::backend::cpu {
namespace {

/// CPU quota of this process's cgroup in cores (version 2: "<quota> <period>" or "max <period>");
/// 0: none.
double cgroup_quota() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) {
    return 0;
  }
  return std::stod(quota) / period;
}

}  // namespace

int available_cores() {
  const int cores = std::max(
      1, static_cast<int>(std::thread::hardware_concurrency()));  // respects the affinity mask
  const double quota = cgroup_quota();
  return quota > 0 ? std::clamp(static_cast<int>(std::floor(quota)), 1, cores) : cores;
}

}  // namespace hearth::backend::cpu
