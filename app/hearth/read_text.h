#pragma once

#include <istream>
#include <iterator>
#include <string>

namespace hearth::app {

/// Everything that is left in `in`.
inline std::string read_all(std::istream& in) {
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace hearth::app
