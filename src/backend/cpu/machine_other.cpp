#include <algorithm>
#include <thread>

#include <unistd.h>

#include "backend/cpu/machine.h"

namespace hearth::backend::cpu {

int available_cores() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::vector<double> core_speeds() {
  return std::vector<double>(static_cast<std::size_t>(available_cores()), 1.0);
}

std::int64_t available_memory() {
  return std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
}

}  // namespace hearth::backend::cpu
