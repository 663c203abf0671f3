#include "engine/schedule/share_rows.h"

#include <algorithm>

namespace hearth::engine {

std::vector<std::int64_t> share_rows(std::span<const std::int64_t> pending, std::int64_t max_rows) {
  std::vector<std::int64_t> rows(pending.size(), 0);
  std::int64_t left = max_rows;
  const auto give = [&](std::size_t i, std::int64_t wanted) {
    const std::int64_t n = std::min(wanted, left);
    rows[i] += n;
    left -= n;
  };
  for (std::size_t i = 0; i < pending.size(); ++i) {
    give(i, std::min<std::int64_t>(pending[i], 1));
  }
  for (std::size_t i = 0; i < pending.size(); ++i) {
    give(i, pending[i] - rows[i]);
  }
  return rows;
}

}  // namespace hearth::engine
