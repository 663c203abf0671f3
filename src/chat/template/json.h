#pragma once
/// Values as JSON, the way Python's json.dumps spells them (what Hugging Face's `tojson` filter
/// calls).

#include <optional>
#include <string>

#include "base/result.h"
#include "chat/template/runtime.h"

namespace hearth::chat {

struct JsonStyle {
  bool ascii_only = false;  // \uXXXX for everything else
  bool sort_keys = false;
  std::optional<std::string> indent;  // one level's; absent: all on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

/// Text keeps its origins, escapes have the origin of what they escape; all punctuation is
/// untrusted. Errors: invalid_file for values that JSON lacks (undefined, functions, namespaces).
Result<void> write_json(TextWriter& out, const Value& value, const JsonStyle& style);

}  // namespace hearth::chat
