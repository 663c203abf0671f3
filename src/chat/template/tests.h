#pragma once
/// The tests after `is`.

#include <string_view>

#include "base/result.h"
#include "chat/template/runtime.h"

namespace hearth::chat {

[[nodiscard]] bool has_test(std::string_view name);

/// `subject is name(arguments)`. Errors: unsupported for an unknown test.
Result<bool> apply_test(Runtime& runtime, std::string_view name, const Value& subject,
                        const Arguments& arguments);

}  // namespace hearth::chat
