#include <cstdint>

#include <sys/mman.h>
#include <unistd.h>

#include "base/memory_advice.h"

namespace hearth {
namespace {

/// Advises the whole pages inside [first, first + n_bytes).
void advise_inner_pages(std::uintptr_t first, std::size_t n_bytes, int advice) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t begin = (first + page - 1) / page * page;
  const std::uintptr_t end = (first + n_bytes) / page * page;
  if (begin < end) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): a system call takes it, nothing is optimised.
    ::madvise(reinterpret_cast<void*>(begin), end - begin, advice);
  }
}

}  // namespace

void advise_huge_pages([[maybe_unused]] std::span<std::byte> memory) {
#if defined(MADV_HUGEPAGE)
  advise_inner_pages(reinterpret_cast<std::uintptr_t>(memory.data()), memory.size(), MADV_HUGEPAGE);
#endif
}

void drop_mapped_pages(Bytes mapping) {
  advise_inner_pages(reinterpret_cast<std::uintptr_t>(mapping.data()), mapping.size(),
                     MADV_DONTNEED);
}

}  // namespace hearth
