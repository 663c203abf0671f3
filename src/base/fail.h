#pragma once
/// `return fail(ErrorCode::invalid_file, "{}: expected {}, found {}", ...)`.
/// A header of its own because formatting does not compile under nvcc.

#include <utility>

#include "base/format.h"
#include "base/result.h"

namespace hearth {

template <class... Args>
[[nodiscard]] Failure fail(ErrorCode code, format_string<Args...> message, Args&&... args) {
  return Failure(Error{code, format(message, std::forward<Args>(args)...)});
}

}  // namespace hearth
