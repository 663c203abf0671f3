#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <system_error>

#include "base/format.h"

namespace hearth::app {

/// A check of CLI11 for options that take a seed, of which it would read -1 as the largest: what is
/// wrong with `text`, or an empty string.
inline std::string check_seed(const std::string& text) {
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  return error == std::errc() && end == text.data() + text.size()
             ? ""
             : format("expected a number from 0 to 2^64 - 1, found '{}'", text);
}

}  // namespace hearth::app
