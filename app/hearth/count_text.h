#pragma once

#include <cstdint>
#include <string>

#include "base/format.h"

namespace hearth::app {

/// "2.95 B", "134.5 M", "576"
inline std::string count_text(std::int64_t n) {
  const auto count = static_cast<double>(n);
  if (n >= 1'000'000'000) {
    return format("{:.2f} B", count / 1e9);
  }
  return n >= 1'000'000 ? format("{:.1f} M", count / 1e6) : format("{}", n);
}

}  // namespace hearth::app
