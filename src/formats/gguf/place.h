#pragma once
/// Where in a file something stands, as messages say it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/fail.h"

namespace hearth::formats {

/// Printed as `model.gguf: tensor "output.weight" at byte 4711`; parts that are empty are left out.
struct Place {
  std::string_view file;
  std::string_view kind;                  // "key", "tensor", "header"
  std::string_view name;                  // as the file spells it: any bytes
  std::optional<std::uint64_t> offset{};  // of its bytes, where it has any
};

std::string to_string(const Place& place);

/// Bytes of a file as one line of printable ASCII in quotes, at most 80 of them: a message never
/// carries a terminal escape or invalid UTF-8.
std::string in_quotes(std::string_view bytes);

/// An invalid_file error at `place`; the message says what was expected and what was found.
template <class... Args>
[[nodiscard]] Failure invalid(const Place& place, format_string<Args...> message, Args&&... args) {
  return fail(ErrorCode::invalid_file, "{}: {}", to_string(place),
              format(message, std::forward<Args>(args)...));
}

}  // namespace hearth::formats
