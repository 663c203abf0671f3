#include "tensor/buffer.h"

#include <cstdlib>
#include <memory>
#include <new>

namespace hearth {
namespace {

constexpr std::int64_t alignment = 64;  // one cache line, one 512-bit vector

}  // namespace

Buffer::Buffer(std::int64_t n_bytes) {
  if (n_bytes == 0) {
    return;
  }
  // calloc of a large block maps untouched zero pages; the slack holds the aligned start and the
  // original address.
  const std::int64_t slack = alignment + static_cast<std::int64_t>(sizeof(void*));
  void* block = std::calloc(1, static_cast<std::size_t>(n_bytes + slack));
  if (block == nullptr) {
    throw std::bad_alloc();
  }
  auto* first = static_cast<std::byte*>(block) + sizeof(void*);
  void* aligned = first;
  std::size_t space = static_cast<std::size_t>(n_bytes) + alignment;
  std::align(alignment, static_cast<std::size_t>(n_bytes), aligned, space);
  static_cast<void**>(aligned)[-1] = block;
  bytes_ = {static_cast<std::byte*>(aligned), static_cast<std::size_t>(n_bytes)};
}

Buffer::~Buffer() {
  if (!bytes_.empty()) {
    std::free(static_cast<void**>(static_cast<void*>(bytes_.data()))[-1]);
  }
}

}  // namespace hearth
