#include <algorithm>
#include <thread>

#include "backend/cpu/thread_pool.h"

namespace hearth::backend::cpu {

int available_cores() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace hearth::backend::cpu
