// A file of its own: where GCC 12 sees both operators inlined, it takes malloc and free for a
// mismatch.

#include "tests/sampling/allocation_counter.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int> n_allocations = 0;

}  // namespace

int hearth::sampling::allocation_count() {
  return n_allocations;
}

void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++n_allocations;
  return std::malloc(size);
}

void* operator new(std::size_t size) {
  if (void* memory = operator new(size, std::nothrow)) {
    return memory;
  }
  throw std::bad_alloc();
}

void operator delete(void* memory) noexcept {
  std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
