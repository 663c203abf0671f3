#pragma once
/// HTML escaping. Prompts are no HTML, but `safe` text added to other text escapes it, and some
/// templates do that.

#include "base/result.h"
#include "chat/template/runtime.h"

namespace hearth::chat {

/// `text` with & < > ' " escaped, marked as escaped. Escapes have the origin of what they stand
/// for.
Result<Value> escape_html(Runtime& runtime, const Text& text);

}  // namespace hearth::chat
