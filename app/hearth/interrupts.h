#pragma once

namespace hearth::app {

/// While one exists, Ctrl-C (SIGINT) is an event to ask for and does not end the process.
/// At most one at a time.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// Whether Ctrl-C was pressed since the last clear().
  [[nodiscard]] bool happened() const;
  void clear();

  /// Readable as soon as happened(), for poll().
  [[nodiscard]] int descriptor() const { return pipe_[0]; }

 private:
  int pipe_[2] = {-1, -1};  // a pipe, so that no thread can miss what another one was told
};

}  // namespace hearth::app
