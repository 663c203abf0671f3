/// The one executable. Everything it does is in the files beside it.

#include <cstddef>
#include <iostream>

#include <unistd.h>

#include "command_line.h"

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  hearth::app::Console console{.in = std::cin,
                               .out = std::cout,
                               .talk = std::cerr,
                               .in_is_terminal = isatty(STDIN_FILENO) != 0,
                               .out_is_terminal = isatty(STDOUT_FILENO) != 0,
                               .talk_is_terminal = isatty(STDERR_FILENO) != 0};
  const int code = hearth::app::run_command_line({argv, static_cast<std::size_t>(argc)}, console);
  std::cout.flush();
  if (!std::cout) {
    std::cerr << "hearth: the output could not be written\n";
    return hearth::app::ExitCode::failed;
  }
  return code;
}
