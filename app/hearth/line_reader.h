#pragma once

#include <optional>
#include <string>

#include "interrupts.h"

namespace hearth::app {

/// Lines that a user types on standard input, where Ctrl-C is an event of its own.
class LineReader {
 public:
  enum class Event { line, interrupted, end };

  explicit LineReader(const Interrupts& interrupts) : interrupts_(interrupts) {}

  /// Waits for the next event; line() is then the line without its end. The caller clears the
  /// interrupt.
  Event next();
  [[nodiscard]] const std::string& line() const { return line_; }

 private:
  [[nodiscard]] bool take_line();

  const Interrupts& interrupts_;
  std::string buffer_;  // read, not yet handed out
  std::string line_;
  bool at_end_ = false;
};

}  // namespace hearth::app
