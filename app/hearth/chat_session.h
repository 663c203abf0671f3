#pragma once

#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chat/conversation.h"

namespace hearth::app {

/// A conversation at the keyboard: what each line that the user types means, and the history.
/// Knows no terminal and no model: lines come in through take_line(), answers from a function.
class ChatSession {
 public:
  /// Answers the conversation, which ends in the user's message, and returns the text of the
  /// answer.
  using Answerer = std::function<Result<std::string>(const std::vector<chat::Message>&)>;

  /// Help, hints and errors go to `talk`. An empty `system` is none.
  ChatSession(Answerer answer, std::ostream& talk, std::string system = {});

  /// One line without its end: a command, a message, or part of a message between """ and """.
  /// A message whose answer fails is told and forgotten, so that the conversation stays usable.
  void take_line(std::string_view line);

  /// Ctrl-C at the prompt: drops a message that is being typed.
  void interrupt();

  [[nodiscard]] bool is_over() const { return is_over_; }
  /// What to print before the next line.
  [[nodiscard]] std::string_view prompt() const { return multi_line_ ? "... " : ">>> "; }

  /// The conversation so far, the system message first.
  [[nodiscard]] std::vector<chat::Message> messages() const;

 private:
  struct Command;
  static const std::vector<Command>& commands();

  bool take_command(std::string_view line);
  void take_message(std::string text);
  void help(std::string_view argument);
  void set_system(std::string_view argument);
  void clear(std::string_view argument);
  void end(std::string_view argument);

  Answerer answer_;
  std::ostream& talk_;
  std::string system_;
  std::vector<chat::Message> turns_;       // user, assistant, user, ...
  std::optional<std::string> multi_line_;  // what has been typed since """
  bool is_over_ = false;
};

}  // namespace hearth::app
