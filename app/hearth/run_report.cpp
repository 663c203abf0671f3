#include "run_report.h"

#include <cstdint>
#include <ostream>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/utf8.h"

namespace hearth::app {
namespace {

double mebibytes(std::int64_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}

/// Weights in memory: those of the backend, and those that the model widened for itself.
std::int64_t copied_bytes(const RunSession& session) {
  return session.engine().runner().memory().weight_bytes +
         session.open.model->copied_weight_bytes();
}

}  // namespace

void tell_ending(const RunSession& session, const Answer& answer) {
  if (answer.ending == Ending::context_full) {
    warn(session.console, format("the answer stops here because the context of {} tokens is full",
                                 session.engine().context()));
  }
}

void tell_timings(const RunSession& session, const Turn& turn) {
  const auto& timings = turn.answer.timings;
  const auto memory = session.engine().runner().memory();
  session.console.talk
      << format("load         {:.0f} ms, {}\n", session.load_time.count(), session.open.device())
      << format("prompt       {} tokens in {:.0f} ms, {:.1f} tokens/s\n", timings.n_prompt,
                Milliseconds(timings.first_token).count(), timings.prompt_speed())
      << format("generation   {} tokens, {:.1f} tokens/s, ended by {}\n", timings.n_generated,
                timings.generation_speed(), name_of(turn.answer.ending))
      << format(
             "memory       weights {:.1f} MiB in the file and {:.1f} copied, KV {:.1f}, state "
             "{:.1f}, work {:.1f}\n",
             mebibytes(session.open.weight_bytes()), mebibytes(copied_bytes(session)),
             mebibytes(memory.kv_bytes), mebibytes(memory.state_bytes),
             mebibytes(memory.workspace_bytes))
      << format("layout       {}\n", session.engine().runner().layout())
      << format("seed         {}\n", session.sampling.seed);
  const auto& speculation = session.engine().speculation();
  if (speculation.drafter() != nullptr) {
    const auto report = speculation.report();
    session.console.talk << format(
        "drafts       {} of {} accepted in {} steps, {:.2f} s saved, by {}\n", report.n_accepted,
        report.n_drafted, report.n_steps, report.saved_seconds,
        speculation.drafter()->description());
  }
}

nlohmann::ordered_json to_json(const engine::Speculation& speculation) {
  if (speculation.drafter() == nullptr) {
    return nullptr;
  }
  const auto report = speculation.report();
  return {{"drafter", replace_invalid_utf8(speculation.drafter()->description())},
          {"steps", report.n_steps},
          {"drafted", report.n_drafted},
          {"accepted", report.n_accepted},
          {"draft_seconds", report.draft_seconds},
          {"saved_seconds", report.saved_seconds}};
}

nlohmann::ordered_json to_json(const RunSession& session, const Turn& turn) {
  const auto& timings = turn.answer.timings;
  const auto memory = session.engine().runner().memory();
  nlohmann::ordered_json tokens = nlohmann::ordered_json::array();
  for (const auto token : turn.answer.tokens) {
    tokens.push_back(static_cast<std::int32_t>(token));
  }
  const Milliseconds prompt = timings.first_token;
  return {
      {"model", replace_invalid_utf8(session.open.model->name())},
      {"text", turn.answer.text},
      {"tokens", std::move(tokens)},
      {"finish_reason", name_of(turn.answer.ending)},
      {"seed", session.sampling.seed},
      {"n_prompt_tokens", timings.n_prompt},
      {"timings",
       {{"load_ms", session.load_time.count()},
        {"encode_ms", turn.encoding.count()},
        {"prompt_ms", prompt.count()},
        {"first_token_ms", (session.load_time + turn.encoding + prompt).count()},
        {"prompt_tokens_per_s", timings.prompt_speed()},
        {"generated_tokens_per_s", timings.generation_speed()}}},
      {"memory",
       {{"mapped_weight_bytes", session.open.weight_bytes()},
        {"weight_bytes", copied_bytes(session)},
        {"kv_bytes", memory.kv_bytes},
        {"state_bytes", memory.state_bytes},
        {"workspace_bytes", memory.workspace_bytes}}},
      {"speculation", to_json(session.engine().speculation())},
  };
}

}  // namespace hearth::app
