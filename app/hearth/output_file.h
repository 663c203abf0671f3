#pragma once

#include <string>

#include "base/result.h"

namespace hearth::app {

/// Whether OUT may be written. Errors: invalid_argument when something is there that may not be
/// replaced.
Result<void> check_output_file(const std::string& path, bool force);

}  // namespace hearth::app
