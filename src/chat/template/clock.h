#pragma once
/// Dates and times as text, for `strftime_now`.

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hearth::chat {

/// strftime in the C locale, for a time without zone (%Z and %z give nothing).
/// Errors: invalid_file when the result is longer than a few hundred bytes.
Result<std::string> spell_time(std::string_view format, std::chrono::local_seconds time);

}  // namespace hearth::chat
