#include "plan/placement.h"

#include <algorithm>
#include <limits>

#include "base/checked.h"

namespace hearth::plan {
namespace {

constexpr std::int64_t alignment = 256;  // bytes: coalesced on GPUs, whole cache lines on CPUs

/// Half-open range of the arena.
struct Range {
  std::int64_t begin;
  std::int64_t end;
};

/// Last launch that reads each value; the result is read after the end.
std::vector<std::size_t> last_reads(const Plan& plan) {
  std::vector<std::size_t> last(plan.values.size(), 0);
  for (std::size_t i = 0; i < plan.launches.size(); ++i) {
    for (const auto value : writes(plan.launches[i])) {
      last[graph::index(value)] = i;  // a value nobody reads lives for its own launch
    }
    for (const auto value : reads(plan.launches[i])) {
      last[graph::index(value)] = i;
    }
  }
  last[graph::index(plan.result)] = std::numeric_limits<std::size_t>::max();
  return last;
}

/// The smallest gap between `live` ranges that holds `bytes`; past the last range if none does.
std::int64_t best_fit(std::vector<Range>& live, std::int64_t bytes) {
  std::sort(live.begin(), live.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  std::int64_t best = -1;
  std::int64_t best_size = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = 0;
  for (const auto& range : live) {
    const std::int64_t gap = range.begin - end;
    if (gap >= bytes && gap < best_size) {
      best = end;
      best_size = gap;
    }
    end = std::max(end, range.end);
  }
  return best >= 0 ? best : end;
}

}  // namespace

std::int64_t place_values(Plan& plan, std::size_t merged_launches) {
  const auto last = last_reads(plan);
  plan.placements.assign(plan.values.size(), {});
  std::int64_t arena_bytes = 0;
  std::vector<graph::ValueId> alive;
  for (std::size_t i = 0; i < plan.launches.size(); ++i) {
    const std::size_t first_running = i < merged_launches ? 0 : i + 1 - merged_launches;
    std::erase_if(alive,
                  [&](graph::ValueId value) { return last[graph::index(value)] < first_running; });
    for (const auto value : writes(plan.launches[i])) {
      const auto& desc = plan.values[graph::index(value)];
      const auto bytes =
          round_up(desc.rows * desc.features * static_cast<std::int64_t>(sizeof(float)), alignment);
      std::vector<Range> live;
      for (const auto other : alive) {
        const auto& place = plan.placements[graph::index(other)];
        live.push_back({place.offset, place.offset + place.bytes});
      }
      const std::int64_t offset = best_fit(live, bytes);
      plan.placements[graph::index(value)] = {offset, bytes};
      arena_bytes = std::max(arena_bytes, offset + bytes);
      alive.push_back(value);
    }
  }
  return arena_bytes;
}

}  // namespace hearth::plan
