#pragma once
/// Typed access to bound arguments: each reader gives the default for an argument that was not
/// passed.

#include <string_view>

#include "base/fail.h"
#include "chat/template/value.h"

namespace hearth::chat {

inline Result<std::int64_t> integer_or(const Value& value, std::int64_t otherwise) {
  if (value.is_undefined()) {
    return otherwise;
  }
  if (const auto integer = value.to_integer()) {
    return *integer;
  }
  return fail(ErrorCode::invalid_file, "expected an integer, found '{}'", value.type_name());
}

inline bool truth_or(const Value& value, bool otherwise) {
  return value.is_undefined() ? otherwise : value.is_truthy();
}

/// The text of a string argument.
inline Result<const Text*> text_of(const Value& value) {
  if (const Text* text = value.as_text()) {
    return text;
  }
  return fail(ErrorCode::invalid_file, "expected a string, found '{}'", value.type_name());
}

/// Null for an argument that is none or was not passed.
inline Result<const Text*> optional_text(const Value& value) {
  return value.is_undefined() || value.is_none() ? Result<const Text*>(nullptr) : text_of(value);
}

}  // namespace hearth::chat
