#pragma once

#include <span>

#include "console.h"

namespace hearth::app {

/// How the process ends.
enum ExitCode : int {
  succeeded = 0,
  failed = 1,         // with one line "hearth: ..." on `talk`
  misused = 2,        // the command line cannot be understood
  interrupted = 130,  // Ctrl-C, as shells count it, or a wish to end that was heard
};

/// Parses the arguments (the first is the program) and runs what they ask for. Returns the exit
/// code.
int run_command_line(std::span<const char* const> arguments, Console& console);

}  // namespace hearth::app
