#pragma once

#include <nlohmann/json_fwd.hpp>

#include "run_session.h"

namespace hearth::app {

/// What the user must know about the end of an answer: it is never cut silently.
void tell_ending(const RunSession& session, const Answer& answer);

/// Times, memory and seed, one per line on `talk`.
void tell_timings(const RunSession& session, const Turn& turn);

/// What guessing has done; null where nothing is guessed.
nlohmann::ordered_json to_json(const engine::Speculation& speculation);

/// Everything about one answer. `first_token_ms` counts from the start of loading.
nlohmann::ordered_json to_json(const RunSession& session, const Turn& turn);

}  // namespace hearth::app
