#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"

namespace hearth::engine {

/// Hands out the blocks of the paged KV cache. A block belongs to exactly one owner at a time. One
/// thread at a time.
class BlockPool {
 public:
  explicit BlockPool(std::int64_t n_blocks);

  [[nodiscard]] std::int64_t n_free() const { return static_cast<std::int64_t>(free_.size()); }
  [[nodiscard]] std::int64_t n_blocks() const { return n_blocks_; }

  /// Appends `n` blocks to `table`. Errors: out_of_memory when fewer are free; then nothing has
  /// changed.
  Result<void> allocate(std::int64_t n, std::vector<std::int32_t>& table);
  /// Takes back all blocks of `table` and empties it.
  void free(std::vector<std::int32_t>& table);

 private:
  std::int64_t n_blocks_;
  std::vector<std::int32_t> free_;  // lowest number last, so that it goes out first
};

}  // namespace hearth::engine
