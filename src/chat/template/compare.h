#pragma once
/// Python's comparisons. They spend steps: nested shared lists make them exponential.

#include "base/result.h"
#include "chat/template/limits.h"
#include "chat/template/value.h"

namespace hearth::chat {

/// For a search of `key` in a dict: keys are compared as a whole.
Result<void> spend_lookup(Budget& budget, const Value& key);

/// a == b: numbers compare across kinds, containers by content. Errors: out_of_memory.
Result<bool> equal(Budget& budget, const Value& a, const Value& b);

/// a < b. Errors: invalid_file for kinds that have no order, out_of_memory.
Result<bool> less(Budget& budget, const Value& a, const Value& b);

/// `item in container`. Errors: invalid_file when that is not a container, out_of_memory.
Result<bool> contains(Budget& budget, const Value& container, const Value& item);

}  // namespace hearth::chat
