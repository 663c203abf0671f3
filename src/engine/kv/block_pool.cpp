#include "engine/kv/block_pool.h"

#include <numeric>

#include "base/fail.h"

namespace hearth::engine {

BlockPool::BlockPool(std::int64_t n_blocks)
    : n_blocks_(n_blocks), free_(static_cast<std::size_t>(n_blocks)) {
  std::iota(free_.rbegin(), free_.rend(), 0);
}

Result<void> BlockPool::allocate(std::int64_t n, std::vector<std::int32_t>& table) {
  if (n > n_free()) {
    return fail(ErrorCode::out_of_memory, "{} KV blocks wanted, {} of {} free", n, n_free(),
                n_blocks_);
  }
  for (std::int64_t i = 0; i < n; ++i) {
    table.push_back(free_.back());
    free_.pop_back();
  }
  return {};
}

void BlockPool::free(std::vector<std::int32_t>& table) {
  free_.insert(free_.end(), table.rbegin(), table.rend());
  table.clear();
}

}  // namespace hearth::engine
