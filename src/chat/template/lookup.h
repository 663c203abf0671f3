#pragma once
/// How templates reach into values: object.name, object[key], and dotted paths.

#include <string_view>

#include "base/result.h"
#include "chat/template/runtime.h"

namespace hearth::chat {

/// object.name: methods first, then dict entries, as Python's getattr does; undefined when there is
/// neither. Errors: invalid_file when `object` itself is undefined.
Result<Value> get_attribute(Runtime& runtime, const Value& object, std::string_view name);

/// object[key]: entries and items first, then methods. Errors: as get_attribute.
Result<Value> get_item(Runtime& runtime, const Value& object, const Value& key);

/// The `attribute` argument of filters: "a.b.0" is item by item; an integer is one index.
Result<Value> lookup_path(Runtime& runtime, const Value& object, const Value& path);

}  // namespace hearth::chat
