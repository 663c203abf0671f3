#include "answer.h"

#include <array>
#include <utility>

#include "engine/text_stream.h"

namespace hearth::app {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array<std::string_view, 5> ending_names{"end_of_generation", "max_tokens",
                                                       "context_full", "stop_text", "interrupted"};

Ending ending_of(engine::FinishReason reason) {
  switch (reason) {
    case engine::FinishReason::end_of_generation:
      return Ending::end_of_generation;
    case engine::FinishReason::max_tokens:
      return Ending::max_tokens;
    case engine::FinishReason::context_full:
      break;
  }
  return Ending::context_full;
}

double per_second(std::int64_t n, AnswerTimings::Seconds time) {
  return n > 0 && time.count() > 0 ? static_cast<double>(n) / time.count() : 0;
}

/// Runs all steps of the prompt but the last, so that a long one can be interrupted. False when it
/// was.
Result<bool> read_prompt(engine::Engine& engine, std::int64_t n_prompt,
                         const AnswerWatcher& watcher) {
  const std::int64_t rows_per_step = engine.runner().options().max_rows;
  for (std::int64_t left = n_prompt; left > rows_per_step; left -= rows_per_step) {
    if (watcher.is_interrupted()) {
      return false;
    }
    HEARTH_TRY(engine.step());
  }
  return !watcher.is_interrupted();
}

}  // namespace

std::string_view name_of(Ending ending) {
  return ending_names[static_cast<std::size_t>(ending)];
}

double AnswerTimings::prompt_speed() const {
  return per_second(n_prompt, first_token);
}

double AnswerTimings::generation_speed() const {
  return per_second(n_generated - 1, others);
}

Result<Answer> answer(engine::Engine& engine, Question question, const AnswerWatcher& watcher) {
  Answer answer;
  const auto n_prompt = static_cast<std::int64_t>(question.request.prompt.size());
  answer.timings.n_prompt = n_prompt;
  engine::TextStream text(engine.runner().model().tokenizer(), std::move(question.stops),
                          {.at_text_start = !question.continues_text});
  const auto show = [&](const std::string& piece) {
    if (!piece.empty()) {
      answer.text += piece;
      watcher.on_text(piece);
    }
  };
  const auto start = Clock::now();
  auto first = start;
  HEARTH_ASSIGN(auto stream, engine.submit(std::move(question.request)));
  HEARTH_ASSIGN(bool goes_on, read_prompt(engine, n_prompt, watcher));
  answer.ending = Ending::interrupted;
  while (goes_on) {
    HEARTH_ASSIGN(const auto token, stream.next());
    const auto now = Clock::now();
    if (!token) {
      answer.ending = ending_of(*stream.finish_reason());
      break;
    }
    if (answer.tokens.empty()) {
      first = now;
      answer.timings.first_token = now - start;
    }
    answer.timings.others = now - first;
    answer.tokens.push_back(*token);
    show(text.push(*token));
    goes_on = !text.stop() && !watcher.is_interrupted();
  }
  show(text.finish());
  if (text.stop()) {
    answer.ending = Ending::stop_text;
  }
  answer.timings.n_generated = static_cast<std::int64_t>(answer.tokens.size());
  return answer;
}

}  // namespace hearth::app
