#include "run_session.h"

#include <algorithm>
#include <ostream>
#include <utility>
#include <variant>

#include "base/format.h"
#include "printable.h"

namespace hearth::app {
namespace {

using Clock = std::chrono::steady_clock;

/// What the options ask of a model that it may not be able to give.
void add_warnings(const RunOptions& options, const model::Model& model, const Prompter& prompter,
                  std::vector<std::string>& warnings) {
  if (!prompter.has_template() && !options.raw) {
    warnings.push_back(
        format("{} has no chat template; it goes on with the text as it stands", model.name()));
  }
  if (!prompter.has_template() && !options.system.empty()) {
    warnings.push_back("--system has no effect without a chat template");
  }
  if (options.context > model.params().context) {
    warnings.push_back(format("--context {}: {} was trained for {} tokens", options.context,
                              model.name(), model.params().context));
  }
}

}  // namespace

Result<RunSession> open_session(const RunOptions& options, Console& console) {
  const auto start = Clock::now();
  HEARTH_ASSIGN(auto open, open_model_with_head(options.model, options.draft));
  const auto& model = *open.model;
  std::vector<std::string> warnings = model.warnings();
  HEARTH_ASSIGN(auto recommended, recommended_sampling(model.checkpoint().metadata(), warnings));
  HEARTH_ASSIGN(auto sampling,
                choose_sampling(options.sampling, std::move(recommended), model.params().vocab));
  HEARTH_ASSIGN(auto prompter, Prompter::create(model, options.raw));
  add_warnings(options, model, prompter, warnings);
  const std::int64_t context =
      options.context > 0 ? options.context : std::min(model.params().context, default_context);
  HEARTH_ASSIGN(auto opened, open_engine(open, options.draft,
                                         {.context = context, .kv_dtype = options.model.kv_dtype}));
  for (const auto& warning : warnings) {
    warn(console, warning);
  }
  return RunSession{.options = options,
                    .console = console,
                    .open = std::move(open),
                    .prompter = std::move(prompter),
                    .sampling = std::move(sampling),
                    .opened = std::move(opened),
                    .load_time = Clock::now() - start};
}

Result<Turn> take_turn(RunSession& session, const std::vector<chat::Message>& messages,
                       const AnswerWatcher& watcher) {
  const auto start = Clock::now();
  const bool has_template = session.prompter.has_template();
  HEARTH_ASSIGN(auto prompt, has_template ? session.prompter.chat(messages)
                                          : session.prompter.complete(
                                                std::get<std::string>(messages.back().content)));
  const Milliseconds encoding = Clock::now() - start;
  HEARTH_ASSIGN(auto reply, answer(session.engine(),
                                   {.request = {.prompt = std::move(prompt),
                                                .sampling = session.sampling,
                                                .max_tokens = session.options.max_tokens},
                                    .stops = session.options.stops,
                                    .continues_text = !has_template},
                                   watcher));
  return Turn{std::move(reply), encoding};
}

void warn(Console& console, std::string_view message) {
  console.talk << "hearth: warning: " << printable(message) << '\n';
}

}  // namespace hearth::app
