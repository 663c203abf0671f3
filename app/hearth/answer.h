#pragma once
/// One answer of a model, as `hearth run` and `hearth bench` want it: text as it comes, then
/// everything about it.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "engine/engine.h"

namespace hearth::app {

struct Question {
  engine::Request request;
  std::vector<std::string> stops;  // not empty, valid UTF-8
  bool continues_text = false;     // the answer goes on in the middle of the prompt's text
};

enum class Ending {
  end_of_generation,
  max_tokens,
  context_full,
  stop_text,
  interrupted,
};
/// As --json spells it.
std::string_view name_of(Ending ending);

struct AnswerTimings {
  using Seconds = std::chrono::duration<double>;

  std::int64_t n_prompt = 0;
  std::int64_t n_generated = 0;
  Seconds first_token{};  // from the request to the first token: reading the prompt
  Seconds others{};       // from the first token to the last

  /// Tokens per second; 0 when nothing was measured.
  [[nodiscard]] double prompt_speed() const;
  [[nodiscard]] double generation_speed() const;
};

struct Answer {
  std::string text;
  std::vector<TokenId> tokens;  // those of a stop string included
  Ending ending{};
  AnswerTimings timings;
};

/// Watches an answer while it is made.
struct AnswerWatcher {
  std::function<void(std::string_view text)> on_text;  // complete UTF-8
  /// Asked before every step; true ends the answer.
  std::function<bool()> is_interrupted;
};

/// Answers `question` on an engine that serves nobody else. Errors: those of Engine::submit and of
/// its steps.
Result<Answer> answer(engine::Engine& engine, Question question, const AnswerWatcher& watcher);

}  // namespace hearth::app
