#pragma once
/// A stable sort whose comparison may fail, which std::stable_sort cannot take.

#include <vector>

#include "base/result.h"
#include "chat/template/limits.h"
#include "chat/template/value.h"

namespace hearth::chat {

/// An item and what it is ordered by.
struct Keyed {
  Value key;
  Value item;
};

/// The items in the order of their keys; equal keys keep their order, also when `is_reversed`.
/// Errors: those of less().
Result<std::vector<Value>> sorted_items(Budget& budget, std::vector<Keyed> keyed, bool is_reversed);

}  // namespace hearth::chat
