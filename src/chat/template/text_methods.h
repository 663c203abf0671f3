#pragma once
/// Python's str methods.

#include <string_view>

#include "base/result.h"
#include "chat/template/runtime.h"

namespace hearth::chat {

using TextMethod = Result<Value> (*)(Runtime&, const Text&, const Arguments&);

/// Null when str has no such method (or it makes no sense here: encode, translate).
[[nodiscard]] TextMethod find_text_method(std::string_view name);

/// text.title(), text.capitalize() and the like, shared with the filters of the same name.
Result<Value> upper(Runtime& runtime, const Text& text);
Result<Value> lower(Runtime& runtime, const Text& text);
Result<Value> title(Runtime& runtime, const Text& text);
Result<Value> capitalize(Runtime& runtime, const Text& text);

/// Whether there are cased characters and all are of the given case.
[[nodiscard]] bool is_upper(const Text& text);
[[nodiscard]] bool is_lower(const Text& text);

}  // namespace hearth::chat
