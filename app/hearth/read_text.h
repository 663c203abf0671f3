#pragma once

#include <array>
#include <cstddef>
#include <istream>
#include <iterator>
#include <string>

#include "base/fail.h"
#include "base/result.h"

namespace hearth::app {

/// Everything that is left in `in`, which is standard input.
/// Errors: io if it cannot be read, such as a folder or a closed descriptor.
inline Result<std::string> read_all(std::istream& in) {
  std::string text;
  std::array<char, 4096> bytes;
  // Iterators of the buffer would throw what the stream keeps as its state.
  do {
    in.read(bytes.data(), std::ssize(bytes));
    text.append(bytes.data(), static_cast<std::size_t>(in.gcount()));
  } while (in);
  if (in.bad()) {
    return fail(ErrorCode::io, "standard input: cannot be read");
  }
  return text;
}

}  // namespace hearth::app
