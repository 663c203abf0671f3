#pragma once
/// What `hearth run` has open: a model on a backend, its template and an engine.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "answer.h"
#include "base/result.h"
#include "chat/conversation.h"
#include "console.h"
#include "draft_options.h"
#include "engine/engine.h"
#include "model_options.h"
#include "prompt.h"
#include "sampling/params.h"
#include "sampling_options.h"

namespace hearth::app {

using Milliseconds = std::chrono::duration<double, std::milli>;

/// Enough for a chat, and small enough not to fill a machine with KV cache.
inline constexpr std::int64_t default_context = 4096;

struct RunOptions {
  ModelOptions model;
  SamplingOptions sampling;
  DraftOptions draft;
  std::optional<std::string> prompt;
  std::string system;
  std::vector<std::string> stops;
  std::int64_t context = 0;  // 0: the smaller of the trained context and default_context
  std::int64_t max_tokens = -1;
  bool raw = false;
  bool json = false;
  bool verbose = false;
};

/// Everything an answer needs. Members are destroyed in reverse order: the engine first.
struct RunSession {
  const RunOptions& options;
  Console& console;
  OpenModel open;
  Prompter prompter;
  sampling::SamplingParams sampling;
  OpenEngine opened;
  Milliseconds load_time{};

  [[nodiscard]] engine::Engine& engine() const { return *opened.engine; }
};

/// Opens the model; what is odd about it is told as warnings. Errors: those of every part.
Result<RunSession> open_session(const RunOptions& options, Console& console);

/// An answer and what it took to write its prompt.
struct Turn {
  Answer answer;
  Milliseconds encoding{};  // template and tokenizer
};

/// Answers a conversation that ends in the user's message. A model without template goes on with
/// the text of that message alone.
Result<Turn> take_turn(RunSession& session, const std::vector<chat::Message>& messages,
                       const AnswerWatcher& watcher);

/// One line on `talk`.
void warn(Console& console, std::string_view message);

}  // namespace hearth::app
