#pragma once
/// What lists, tuples, strings and dicts have in common in Python: length, iteration, indices and
/// slices.

#include <optional>

#include "base/result.h"
#include "chat/template/runtime.h"

namespace hearth::chat {

/// len(value). Null for kinds without a length; 0 for undefined.
[[nodiscard]] std::optional<std::size_t> length(const Value& value);

/// Everything iteration over `value` gives, as a list: items, characters, keys; nothing for
/// undefined. A list comes back as itself. Errors: invalid_file when `value` cannot be iterated.
Result<Value> to_list(Runtime& runtime, const Value& value);

/// value[index] for lists, tuples and strings, negative from the end; undefined outside.
Result<Value> item_at(Runtime& runtime, const Value& value, std::int64_t index);

/// value[begin:end:step] for lists and strings; each bound may be none.
/// Errors: invalid_file for other kinds, bounds that are no integers, and step 0.
Result<Value> slice(Runtime& runtime, const Value& value, const Value& begin, const Value& end,
                    const Value& step);

/// The bytes [begin, end) of `text` as a value.
Result<Value> part_of(Runtime& runtime, const Text& text, std::size_t begin, std::size_t end);

}  // namespace hearth::chat
