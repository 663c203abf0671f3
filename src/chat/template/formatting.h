#pragma once
/// Python's two ways to fill text with values: "%s" and "{}".

#include "base/result.h"
#include "chat/template/runtime.h"

namespace hearth::chat {

/// "...%s...%d..." % values. `values` is a tuple, a dict for "%(name)s", or a single value.
/// Errors: invalid_file for an unknown conversion or too few or many values.
Result<Value> format_percent(Runtime& runtime, const Text& text, const Value& values);

/// "...{}...{0}...{name:>10}..." with the arguments of a call. Fields name arguments only: no
/// attributes, no items. Errors: invalid_file for an unknown field or specification.
Result<Value> format_braces(Runtime& runtime, const Text& text, const Arguments& arguments);

}  // namespace hearth::chat
