#include "chat/template/arguments.h"

#include <algorithm>

#include "base/fail.h"

namespace hearth::chat {

const Value* Arguments::find_keyword(std::string_view name) const {
  const auto at = std::find_if(keyword.begin(), keyword.end(),
                               [name](const auto& argument) { return argument.first == name; });
  return at == keyword.end() ? nullptr : &at->second;
}

Result<std::vector<Value>> bind_arguments(std::string_view function, const Arguments& arguments,
                                          const std::vector<std::string_view>& parameters,
                                          std::size_t n_required) {
  if (arguments.positional.size() > parameters.size()) {
    return fail(ErrorCode::invalid_file, "{}() takes at most {} arguments, {} were given", function,
                parameters.size(), arguments.positional.size());
  }
  std::vector<Value> bound = arguments.positional;
  for (std::size_t i = bound.size(); i < parameters.size(); ++i) {
    bound.push_back(Value::undefined("parameter was not provided"));
  }
  for (const auto& [name, value] : arguments.keyword) {
    const auto at = std::find(parameters.begin(), parameters.end(), name);
    if (at == parameters.end()) {
      return fail(ErrorCode::invalid_file, "{}() has no argument '{}'", function, name);
    }
    const auto i = static_cast<std::size_t>(at - parameters.begin());
    if (i < arguments.positional.size()) {
      return fail(ErrorCode::invalid_file, "{}() got two values for argument '{}'", function, name);
    }
    bound[i] = value;
  }
  const auto is_given = [&](std::size_t i) {
    return i < arguments.positional.size() || arguments.find_keyword(parameters[i]);
  };
  for (std::size_t i = 0; i < n_required; ++i) {
    if (!is_given(i)) {
      return fail(ErrorCode::invalid_file, "{}() needs the argument '{}'", function, parameters[i]);
    }
  }
  return bound;
}

}  // namespace hearth::chat
