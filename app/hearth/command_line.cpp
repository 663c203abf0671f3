#include "command_line.h"

#include <algorithm>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/format.h"
#include "commands.h"
#include "printable.h"

namespace hearth::app {
namespace {

constexpr std::string_view version_line = "hearth " HEARTH_VERSION;

struct Declared {
  CLI::App* parser;
  Action action;
};

std::string known_commands() {
  std::string names;
  for (const auto& command : all_commands()) {
    names += (names.empty() ? "" : ", ") + std::string(command.name);
  }
  return names;
}

int misuse(Console& console, std::string_view message, std::string_view command) {
  console.talk << format("hearth: {}; see `hearth {}{}--help`\n", printable(message), command,
                         command.empty() ? "" : " ");
  return ExitCode::misused;
}

/// CLI11 would report an unknown command as an argument too many, without naming the known ones.
bool is_unknown_command(std::string_view first) {
  const auto commands = all_commands();
  return !first.starts_with('-') &&
         std::none_of(commands.begin(), commands.end(),
                      [&](const Command& command) { return command.name == first; });
}

/// CLI11 would list them last to first.
std::string unexpected(const CLI::App& program) {
  const auto arguments = program.remaining(/*recurse=*/true);
  const bool are_words = std::ranges::none_of(
      arguments, [](const std::string& argument) { return argument.starts_with('-'); });
  return format("not expected: {}{}", CLI::detail::join(arguments, " "),
                are_words ? " (a text of several words is one argument if it is quoted)" : "");
}

int run_action(const Action& action, Console& console) {
  const auto result = action(console);
  if (!result) {
    console.out.flush();
    console.talk << format("hearth: {}\n", printable(result.error().message));
    return ExitCode::failed;
  }
  return *result;
}

}  // namespace

int run_command_line(std::span<const char* const> arguments, Console& console) {
  CLI::App program("Hearth runs large language models on this machine.", "hearth");
  program.set_version_flag("--version", std::string(version_line), "Print the version");
  program.set_help_flag("-h,--help", "Print this help");
  program.require_subcommand(1);
  std::vector<Declared> declared;
  for (const auto& command : all_commands()) {
    auto* parser = program.add_subcommand(command.name, command.summary);
    declared.push_back({parser, command.declare(*parser)});
  }

  if (arguments.size() < 2) {
    console.out << program.help();
    return misuse(console, format("expected a command: {}", known_commands()), "");
  }
  if (is_unknown_command(arguments[1])) {
    return misuse(
        console, format("'{}' is not a command; known are {}", arguments[1], known_commands()), "");
  }
  try {
    program.parse(static_cast<int>(arguments.size()), arguments.data());
  } catch (const CLI::CallForVersion& version) {
    console.out << version.what() << '\n';
    return ExitCode::succeeded;
  } catch (const CLI::Success&) {
    const auto asked = program.get_subcommands();
    console.out << (asked.empty() ? program.help() : asked.front()->help("hearth"));
    return ExitCode::succeeded;
  } catch (const CLI::ParseError& error) {
    const auto asked = program.get_subcommands();
    const bool has_extras = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
    return misuse(console, has_extras ? unexpected(program) : error.what(),
                  asked.empty() ? "" : asked.front()->get_name());
  }
  const auto chosen = std::find_if(declared.begin(), declared.end(),
                                   [](const Declared& entry) { return entry.parser->parsed(); });
  return run_action(chosen->action, console);
}

}  // namespace hearth::app
