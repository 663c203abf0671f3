#pragma once
/// The methods of strings, lists and dicts that templates may call: Python's, without those that
/// change the object.

#include <optional>
#include <string_view>

#include "base/result.h"
#include "chat/template/runtime.h"

namespace hearth::chat {

/// The method `name` bound to `subject`, ready to be called; undefined for a method that the
/// sandbox forbids; null when the kind has no such method.
[[nodiscard]] std::optional<Value> find_method(const Value& subject, std::string_view name);

}  // namespace hearth::chat
