#pragma once

#include <algorithm>
#include <string_view>

namespace hearth {

/// Whether two names differ in the case of the letters A to Z at most, as in "Q8_0" and "q8_0".
inline bool equal_without_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

}  // namespace hearth
