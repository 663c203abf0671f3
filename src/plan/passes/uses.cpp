#include "plan/passes/uses.h"

#include <utility>

namespace hearth::plan {

Uses::Uses(const Draft& draft)
    : result_(draft.result), writer_(draft.values.size()), readers_(draft.values.size()) {
  for (std::size_t i = 0; i < draft.launches.size(); ++i) {
    for (const auto value : writes(draft.launches[i])) {
      writer_[graph::index(value)] = i;
    }
    for (const auto value : reads(draft.launches[i])) {
      readers_[graph::index(value)].push_back(i);
    }
  }
}

std::optional<std::size_t> Uses::only_reader(graph::ValueId value) const {
  const auto& all = readers(value);
  return value != result_ && all.size() == 1 ? std::optional(all.front()) : std::nullopt;
}

void erase_launches(std::vector<Launch>& launches, const std::set<std::size_t>& indices) {
  std::vector<Launch> kept;
  for (std::size_t i = 0; i < launches.size(); ++i) {
    if (!indices.contains(i)) {
      kept.push_back(std::move(launches[i]));
    }
  }
  launches = std::move(kept);
}

}  // namespace hearth::plan
