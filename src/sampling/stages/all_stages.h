#pragma once
/// The stages in the order in which they act. A new stage is a file here and a line below.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "sampling/candidates.h"
#include "sampling/history.h"
#include "sampling/params.h"
#include "sampling/stages/logit_bias.h"
#include "sampling/stages/min_p.h"
#include "sampling/stages/penalties.h"
#include "sampling/stages/temperature.h"
#include "sampling/stages/top_k.h"
#include "sampling/stages/top_p.h"
#include "sampling/stages/typical.h"
#include "sampling/token_counter.h"

namespace hearth::sampling {

/// Edits logits, indexed by token id. Acts on greedy choices too.
struct LogitStage {
  std::string_view name;
  bool (*acts)(const SamplingParams&);  // otherwise `apply` changes nothing
  /// How many logits `apply` lowers at most, after up to `n_tokens` tokens; nullopt: it may raise
  /// one
  std::optional<std::int64_t> (*lowers)(const SamplingParams&, std::int64_t n_tokens);
  void (*apply)(const SamplingParams&, const History&, TokenCounter&, std::span<float> logits);
};

/// Thins out or rescales the candidates; there is always at least one, before and after.
struct CandidateStage {
  std::string_view name;
  void (*apply)(const SamplingParams&, Candidates&);
};

inline constexpr std::array logit_stages{
    LogitStage{
        "logit_bias", [](const SamplingParams& params) { return !params.logit_bias.empty(); },
        [](const SamplingParams& params, std::int64_t) { return lowered_by_logit_bias(params); },
        [](const SamplingParams& params, const History&, TokenCounter&, std::span<float> logits) {
          apply_logit_bias(params, logits);
        }},
    LogitStage{"penalties", penalises, lowered_by_penalties, apply_penalties},
};

inline constexpr std::array candidate_stages{
    CandidateStage{"top_k", apply_top_k},
    CandidateStage{"typical", apply_typical},
    CandidateStage{"top_p", apply_top_p},
    CandidateStage{"min_p", apply_min_p},
    CandidateStage{"temperature", apply_temperature},
};

}  // namespace hearth::sampling
