#pragma once
/// Tables whose rows have a `name`.

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "base/ascii_case.h"
#include "base/fail.h"

namespace hearth::model {

/// "llama-1b, llama-4b"
template <class Row>
std::string names_of(std::span<const Row> rows) {
  std::string names;
  for (const Row& row : rows) {
    names += format("{}{}", names.empty() ? "" : ", ", row.name);
  }
  return names;
}

/// By its name in upper or lower case. Errors: not_found, with all names that there are; `what` is
/// what the message calls a row.
template <class Row>
Result<const Row*> find_named(std::span<const Row> rows, std::string_view what,
                              std::string_view name) {
  const auto found = std::ranges::find_if(
      rows, [name](std::string_view known) { return equal_without_case(known, name); }, &Row::name);
  if (found == rows.end()) {
    return fail(ErrorCode::not_found, "'{}' is not a {}; known are {}", name, what, names_of(rows));
  }
  return &*found;
}

}  // namespace hearth::model
