#include "chat_session.h"

#include <algorithm>
#include <ostream>
#include <utility>

#include "base/format.h"
#include "printable.h"

namespace hearth::app {
namespace {

constexpr std::string_view fence = "\"\"\"";

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

/// "/name argument": the name and the argument; no command is called like "/usr/bin" or "/".
struct CommandLine {
  std::string_view name;
  std::string_view argument;
};
std::optional<CommandLine> as_command(std::string_view line) {
  if (!line.starts_with('/')) {
    return std::nullopt;
  }
  const auto name = line.substr(0, line.find(' '));
  const bool is_word = name.size() > 1 && std::all_of(name.begin() + 1, name.end(),
                                                      [](char c) { return c >= 'a' && c <= 'z'; });
  if (!is_word) {
    return std::nullopt;
  }
  return CommandLine{name, trimmed(line.substr(name.size()))};
}

}  // namespace

struct ChatSession::Command {
  std::string_view name;
  std::string_view argument;
  std::string_view help;
  void (ChatSession::*run)(std::string_view argument);
};

const std::vector<ChatSession::Command>& ChatSession::commands() {
  static const std::vector<Command> list{
      {"/help", "", "this list", &ChatSession::help},
      {"/system", "TEXT", "sets the system message; without TEXT, shows it",
       &ChatSession::set_system},
      {"/clear", "", "forgets the conversation, keeps the system message", &ChatSession::clear},
      {"/bye", "", "ends the chat, as Ctrl-D does", &ChatSession::end},
  };
  return list;
}

ChatSession::ChatSession(Answerer answer, std::ostream& talk, std::string system)
    : answer_(std::move(answer)), talk_(talk), system_(std::move(system)) {}

void ChatSession::take_line(std::string_view line) {
  if (multi_line_) {
    const bool closes = line.ends_with(fence);
    *multi_line_ += closes ? line.substr(0, line.size() - fence.size()) : line;
    if (closes) {
      take_message(*std::exchange(multi_line_, std::nullopt));
    } else {
      *multi_line_ += '\n';
    }
    return;
  }
  const auto text = trimmed(line);
  if (text.starts_with(fence)) {
    multi_line_ = "";
    const auto rest = text.substr(fence.size());
    if (!rest.empty()) {
      take_line(rest);
    }
    return;
  }
  if (!take_command(text)) {
    take_message(std::string(text));
  }
}

void ChatSession::interrupt() {
  talk_ << '\n';
  if (!std::exchange(multi_line_, std::nullopt)) {
    talk_ << "(/bye or Ctrl-D ends the chat)\n";
  }
}

std::vector<chat::Message> ChatSession::messages() const {
  std::vector<chat::Message> messages;
  if (!system_.empty()) {
    messages.push_back({.role = "system", .content = system_});
  }
  messages.insert(messages.end(), turns_.begin(), turns_.end());
  return messages;
}

bool ChatSession::take_command(std::string_view line) {
  const auto typed = as_command(line);
  if (!typed) {
    return false;
  }
  const auto command =
      std::find_if(commands().begin(), commands().end(),
                   [&](const Command& candidate) { return candidate.name == typed->name; });
  if (command == commands().end()) {
    talk_ << format("{} is not a command; /help lists them\n", typed->name);
  } else {
    (this->*command->run)(typed->argument);
  }
  return true;
}

void ChatSession::take_message(std::string text) {
  if (text.empty()) {
    return;
  }
  turns_.push_back({.role = "user", .content = std::move(text)});
  auto answer = answer_(messages());
  if (!answer) {
    talk_ << format("hearth: {}\n", printable(answer.error().message));
    turns_.pop_back();
    if (!turns_.empty() && answer.error().code == ErrorCode::invalid_argument) {
      talk_ << "(/clear forgets the conversation, which leaves more room)\n";
    }
    return;
  }
  turns_.push_back({.role = "assistant", .content = std::move(*answer)});
}

void ChatSession::help(std::string_view /*argument*/) {
  for (const auto& command : commands()) {
    talk_ << format("{:<14}{}\n", format("{} {}", command.name, command.argument), command.help);
  }
  talk_ << format("{:<14}begins and ends a message of several lines\n", fence)
        << format("{:<14}stops an answer\n", "Ctrl-C");
}

void ChatSession::set_system(std::string_view argument) {
  if (!argument.empty()) {
    system_ = argument;
  } else {
    talk_ << (system_.empty() ? "there is no system message" : system_) << '\n';
  }
}

void ChatSession::clear(std::string_view /*argument*/) {
  turns_.clear();
}

void ChatSession::end(std::string_view /*argument*/) {
  is_over_ = true;
}

}  // namespace hearth::app
