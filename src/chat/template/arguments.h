#pragma once
/// The arguments of a call, and how functions take them apart.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "chat/template/value.h"

namespace hearth::chat {

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keyword;

  [[nodiscard]] const Value* find_keyword(std::string_view name) const;
};

/// Matches `arguments` with a function's parameter names; parameters nobody gave are undefined.
/// Errors: too many arguments, an unknown or doubled name, fewer than `n_required`; each names the
/// function.
Result<std::vector<Value>> bind_arguments(std::string_view function, const Arguments& arguments,
                                          const std::vector<std::string_view>& parameters,
                                          std::size_t n_required = 0);

}  // namespace hearth::chat
