#pragma once
/// Chat template source to syntax tree.

#include <string_view>

#include "base/result.h"
#include "chat/template/ast.h"

namespace hearth::chat {

/// Parses a whole template.
/// Errors: invalid_file naming the line (syntax, nesting too deep, source too long); unsupported
/// for tags that need other templates (extends, include, import, block) and for autoescape.
Result<Body> parse_template(std::string_view source);

}  // namespace hearth::chat
