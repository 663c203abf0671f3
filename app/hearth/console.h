#pragma once

#include <iosfwd>

namespace hearth::app {

/// Where a command reads and writes: results go to `out`, talk goes to `talk`. Tests pass string
/// streams.
struct Console {
  std::istream& in;
  std::ostream& out;
  std::ostream& talk;
  bool in_is_terminal = false;
  bool out_is_terminal = false;
  bool talk_is_terminal = false;
};

}  // namespace hearth::app
