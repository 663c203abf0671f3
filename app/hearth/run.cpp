/// `hearth run`: a chat at the keyboard, or one answer.

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "base/utf8.h"
#include "chat_session.h"
#include "command_line.h"
#include "commands.h"
#include "interrupts.h"
#include "line_reader.h"
#include "model_options.h"
#include "printable.h"
#include "read_text.h"
#include "run_report.h"
#include "run_session.h"
#include "sampling_options.h"

namespace hearth::app {
namespace {

/// Shows text as it comes; an answer cannot send a terminal control sequences.
AnswerWatcher watch(Console& console, const Interrupts& interrupts) {
  return {
      .on_text =
          [&console](std::string_view text) {
            console.out << (console.out_is_terminal ? printable_answer(text) : std::string(text))
                        << std::flush;
          },
      .is_interrupted = [&interrupts] { return interrupts.happened(); }};
}

Result<int> answer_once(RunSession& session, const std::string& text) {
  const auto& options = session.options;
  if (text.empty() && session.prompter.has_template()) {
    return fail(ErrorCode::invalid_argument,
                "the prompt is empty, expected a PROMPT or text on standard input");
  }
  std::vector<chat::Message> messages;
  if (!options.system.empty()) {
    messages.push_back({.role = "system", .content = options.system});
  }
  messages.push_back({.role = "user", .content = text});

  Interrupts interrupts;
  auto watcher = watch(session.console, interrupts);
  if (options.json) {
    watcher.on_text = [](std::string_view) {};
  }
  HEARTH_ASSIGN(const auto turn, take_turn(session, messages, watcher));
  if (options.json) {
    session.console.out << to_json(session, turn).dump(2);
  }
  session.console.out << '\n' << std::flush;
  tell_ending(session, turn.answer);
  if (options.verbose) {
    tell_timings(session, turn);
  }
  return turn.answer.ending == Ending::interrupted ? ExitCode::interrupted : ExitCode::succeeded;
}

Result<int> chat_at_keyboard(RunSession& session) {
  Console& console = session.console;
  Interrupts interrupts;
  LineReader lines(interrupts);
  const auto watcher = watch(console, interrupts);
  const auto reply = [&](const std::vector<chat::Message>& messages) -> Result<std::string> {
    HEARTH_ASSIGN(auto turn, take_turn(session, messages, watcher));
    interrupts.clear();
    console.out << "\n\n" << std::flush;
    tell_ending(session, turn.answer);
    if (session.options.verbose) {
      tell_timings(session, turn);
    }
    return std::move(turn.answer.text);
  };
  ChatSession chat(reply, console.talk, session.options.system);
  console.talk << format("{}; /help lists the commands\n", printable(session.open.model->name()));
  while (!chat.is_over()) {
    console.talk << chat.prompt() << std::flush;
    switch (lines.next()) {
      case LineReader::Event::line:
        chat.take_line(lines.line());
        break;
      case LineReader::Event::interrupted:
        interrupts.clear();
        chat.interrupt();
        break;
      case LineReader::Event::end:
        console.talk << '\n';
        return ExitCode::succeeded;
    }
  }
  return ExitCode::succeeded;
}

/// The prompt of a one-shot run: the argument, then what a pipe brings without its last line end.
/// nullopt: a chat. Errors: those of read_all().
Result<std::optional<std::string>> one_shot_prompt(const RunOptions& options, Console& console) {
  if (console.in_is_terminal) {
    return options.prompt;
  }
  HEARTH_ASSIGN(auto piped, read_all(console.in));
  if (piped.ends_with('\n')) {
    piped.pop_back();
  }
  if (!options.prompt) {
    return std::optional(std::move(piped));
  }
  return std::optional(piped.empty() ? *options.prompt : *options.prompt + "\n\n" + piped);
}

Result<int> run(const RunOptions& options, Console& console) {
  for (const auto& stop : options.stops) {
    if (stop.empty() || !is_valid_utf8(stop)) {
      return fail(ErrorCode::invalid_argument,
                  "--stop: expected text in UTF-8 that is not empty, found '{}'", printable(stop));
    }
  }
  HEARTH_ASSIGN(const auto prompt, one_shot_prompt(options, console));
  if (!prompt && options.json) {
    return fail(ErrorCode::invalid_argument, "--json answers one prompt; none was given");
  }
  HEARTH_ASSIGN(auto session, open_session(options, console));
  return prompt ? answer_once(session, *prompt) : chat_at_keyboard(session);
}

}  // namespace

Action declare_run(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  add_model_argument(app, options->model.model);
  app.add_option("PROMPT", options->prompt,
                 "Answered once; without it, text from a pipe is, and a terminal gets a chat");
  app.add_option("--system", options->system, "The system message");
  app.add_flag("--raw", options->raw, "Leave the chat template aside: go on with the text");
  app.add_option("-n,--max-tokens", options->max_tokens, "Tokens to generate; -1: no limit")
      ->check(CLI::Range(std::int64_t{-1}, std::int64_t{1} << 31));
  app.add_option("--context", options->context,
                 "Tokens of prompt and answer together (default: as trained, at most 4096)")
      ->check(CLI::Range(std::int64_t{2}, std::int64_t{1} << 24));
  app.add_option("--stop", options->stops, "Text that ends the answer; may be repeated")
      ->allow_extra_args(false);
  add_sampling_options(app, options->sampling);
  add_draft_options(app, options->draft);
  add_backend_options(app, options->model);
  app.add_flag("--json", options->json, "Print one JSON object about the answer");
  app.add_flag("--verbose", options->verbose, "Print times and memory after the answer");
  return [options](Console& console) { return run(*options, console); };
}

}  // namespace hearth::app
