#pragma once
/// Values as text, the way Python's str() and repr() spell them.

#include <string>

#include "base/result.h"
#include "chat/template/runtime.h"

namespace hearth::chat {

/// Python's repr of a float: the shortest digits that read back, "1e+16" style from 1e16 and below
/// 1e-4.
[[nodiscard]] std::string spell_real(double value);

/// str(value). Text keeps its origins; a scalar's spelling has the scalar's origin; brackets,
/// quotes and escapes of containers are untrusted, since their shape is data.
Result<void> write_str(TextWriter& out, const Value& value);

/// repr(value): as write_str, but text is quoted and escaped. Lists and dicts print their items so.
Result<void> write_repr(TextWriter& out, const Value& value);

/// str(value) as a value; a string comes back as itself.
Result<Value> to_string(Runtime& runtime, const Value& value);

}  // namespace hearth::chat
