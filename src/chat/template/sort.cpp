#include "chat/template/sort.h"

#include <algorithm>
#include <utility>

#include "chat/template/compare.h"

namespace hearth::chat {
namespace {

/// Merges the sorted ranges [begin, middle) and [middle, end) of `from` into the same place of
/// `to`.
Result<void> merge(Budget& budget, std::vector<Keyed>& from, std::size_t begin, std::size_t middle,
                   std::size_t end, bool is_reversed, std::vector<Keyed>& to) {
  std::size_t left = begin;
  std::size_t right = middle;
  for (std::size_t out = begin; out < end; ++out) {
    bool takes_right = left == middle;
    if (left < middle && right < end) {
      const Value& a = from[left].key;
      const Value& b = from[right].key;
      HEARTH_ASSIGN(takes_right, is_reversed ? less(budget, a, b) : less(budget, b, a));
    }
    to[out] = std::move(from[takes_right ? right++ : left++]);
  }
  return {};
}

}  // namespace

Result<std::vector<Value>> sorted_items(Budget& budget, std::vector<Keyed> keyed,
                                        bool is_reversed) {
  std::vector<Keyed> merged(keyed.size());
  for (std::size_t width = 1; width < keyed.size(); width *= 2) {
    for (std::size_t begin = 0; begin < keyed.size(); begin += 2 * width) {
      const std::size_t middle = std::min(begin + width, keyed.size());
      const std::size_t end = std::min(begin + 2 * width, keyed.size());
      HEARTH_TRY(merge(budget, keyed, begin, middle, end, is_reversed, merged));
    }
    std::swap(keyed, merged);
  }
  std::vector<Value> items;
  for (Keyed& entry : keyed) {
    items.push_back(std::move(entry.item));
  }
  return items;
}

}  // namespace hearth::chat
