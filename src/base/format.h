#pragma once
/// `hearth::format`: fmt where it is installed, the standard library's where it has one.
/// Only standard argument types are formatted; our own types are passed through their to_string().

#ifdef HEARTH_STD_FORMAT_AND_EXPECTED
#include <format>
namespace hearth {
using std::format;
using std::format_string;
}  // namespace hearth
#else
#include <fmt/core.h>
namespace hearth {
using fmt::format;
using fmt::format_string;
}  // namespace hearth
#endif
