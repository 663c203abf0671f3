#include <algorithm>
#include <cstddef>
#include <thread>

#include <sys/sysctl.h>
#include <unistd.h>

#include "backend/cpu/machine.h"

namespace hearth::backend::cpu {

int available_cores() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

/// Apple's performance cores, level 0. They can read all that the memory gives, and the system
/// alone decides which threads its efficiency cores run, so those are left out.
std::vector<double> core_speeds() {
  int n = 0;
  std::size_t size = sizeof n;
  const bool has_levels =
      ::sysctlbyname("hw.perflevel0.physicalcpu", &n, &size, nullptr, 0) == 0 && n > 0;
  return std::vector<double>(static_cast<std::size_t>(has_levels ? n : available_cores()), 1.0);
}

std::int64_t available_memory() {
  return std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
}

}  // namespace hearth::backend::cpu
