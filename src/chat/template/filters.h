#pragma once
/// The filters after `|`.

#include <string_view>

#include "base/result.h"
#include "chat/template/runtime.h"

namespace hearth::chat {

[[nodiscard]] bool has_filter(std::string_view name);

/// `subject | name(arguments)`. Errors: unsupported for an unknown filter.
Result<Value> apply_filter(Runtime& runtime, std::string_view name, const Value& subject,
                           const Arguments& arguments);

using Filter = Result<Value> (*)(Runtime&, const Value& subject, const Arguments& arguments);

struct NamedFilter {
  std::string_view name;
  Filter filter;
};

/// The filters of each file; null when it has none of that name.
[[nodiscard]] Filter find_text_filter(std::string_view name);
[[nodiscard]] Filter find_number_filter(std::string_view name);
[[nodiscard]] Filter find_sequence_filter(std::string_view name);
[[nodiscard]] Filter find_selection_filter(std::string_view name);

/// The entry of a table of filters.
template <class Table>
[[nodiscard]] Filter find_in(const Table& table, std::string_view name) {
  for (const NamedFilter& entry : table) {
    if (entry.name == name) {
      return entry.filter;
    }
  }
  return nullptr;
}

}  // namespace hearth::chat
