#pragma once

#include <cstdint>

namespace hearth::app {

/// While one exists, Ctrl-C (SIGINT) is an event to ask for and does not end the process. At most
/// one at a time.
class Interrupts {
 public:
  /// What is caught beside Ctrl-C: of work that leaves something to tidy up the wish to end the
  /// process (SIGTERM), too.
  enum class Of : std::uint8_t { ctrl_c, ctrl_c_and_termination };

  explicit Interrupts(Of of = Of::ctrl_c);
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// Whether a signal has come since the last clear().
  [[nodiscard]] bool happened() const;
  void clear();

  /// Readable as soon as happened(), for poll().
  [[nodiscard]] int descriptor() const { return pipe_[0]; }

 private:
  Of of_;
  int pipe_[2] = {-1, -1};  // a pipe, so that no thread can miss what another one was told
};

}  // namespace hearth::app
