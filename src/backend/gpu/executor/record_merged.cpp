/// Launches that become one, because a kernel does what several say. A value that only passes from
/// one to the next is never written.

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "backend/gpu/executor/few_experts.h"
#include "backend/gpu/executor/recorder.h"

namespace hearth::backend::gpu {
namespace {

/// What experts say, with the expert that all rows share.
std::size_t record_experts(const plan::ExpertDown& down, const plan::Launch* next,
                           Recorder& recorder) {
  const auto* shared = next == nullptr ? nullptr : std::get_if<plan::Projection>(next);
  if (shared == nullptr || !is_shared_expert(down, *shared, recorder) ||
      !has_one_reader(down.output, recorder)) {
    shared = nullptr;
  }
  record_expert_down(down, shared, recorder);
  return shared == nullptr ? 1 : 2;
}

/// A projection whose input has been normed and gated by the launch in front.
Result<void> record_plain(plan::Projection projection, Recorder& recorder) {
  projection.norm.reset();
  projection.input_gate.reset();
  recorder.barrier();
  return record_projection(projection, recorder);
}

/// A projection of what a launch gives, which does nothing else with it.
const plan::Projection* projection_of(graph::ValueId value, const plan::Launch* next,
                                      const Recorder& recorder) {
  const auto* projection = next == nullptr ? nullptr : std::get_if<plan::Projection>(next);
  return projection != nullptr && projection->input == value && projection->input_gate &&
                 has_one_reader(value, recorder)
             ? projection
             : nullptr;
}

/// The projection of what `launch` selects, if that is the only row there is: with that row.
std::optional<plan::Projection> projection_of_row(const plan::OpLaunch& launch,
                                                  const plan::Launch* next,
                                                  const Recorder& recorder) {
  const auto* projection = next == nullptr ? nullptr : std::get_if<plan::Projection>(next);
  if (!std::holds_alternative<graph::SelectRows>(launch.op) || projection == nullptr ||
      projection->input != launch.output || !has_one_reader(launch.output, recorder) ||
      recorder.rows(launch.inputs.front()) != 1 || recorder.rows(launch.output) != 1) {
    return std::nullopt;
  }
  plan::Projection of_row = *projection;
  of_row.input = launch.inputs.front();
  // The plan ends the life of what it selects from here.
  const auto addresses = recorder.value(of_row.input).addresses();
  const bool is_in_place = std::ranges::any_of(of_row.parts, [&](const auto& part) {
    return addresses.overlaps(recorder.value(part.output).addresses());
  });
  return is_in_place ? std::nullopt : std::optional(std::move(of_row));
}

}  // namespace

bool has_one_reader(graph::ValueId value, const Recorder& recorder) {
  const plan::Plan& plan = recorder.context().plan;
  std::int64_t reads_of_it = value == plan.result ? 1 : 0;
  for (const auto& launch : plan.launches) {
    reads_of_it += std::ranges::count(plan::reads(launch), value);
  }
  return reads_of_it == 1;
}

Result<std::size_t> record_merged(std::span<const plan::Launch> launches, Recorder& recorder) {
  const plan::Launch* next = launches.size() > 1 ? &launches[1] : nullptr;
  if (const auto* down = std::get_if<plan::ExpertDown>(&launches.front());
      down != nullptr && takes_expert_down(*down, recorder)) {
    return record_experts(*down, next, recorder);
  }
  if (const auto* projection = std::get_if<plan::Projection>(&launches.front())) {
    HEARTH_ASSIGN(const std::size_t n_recorded, record_routed_experts(launches, recorder));
    if (n_recorded > 0) {
      return n_recorded;
    }
    const auto* launch = next == nullptr ? nullptr : std::get_if<plan::OpLaunch>(next);
    const auto* conv = launch == nullptr ? nullptr : std::get_if<graph::CausalConv>(&launch->op);
    if (conv != nullptr && launch->inputs.front() == projection->parts.front().output &&
        has_one_reader(launch->inputs.front(), recorder) &&
        convolves(*projection, *conv, recorder)) {
      const ConvolvedPart convolved{*conv, launch->output};
      HEARTH_TRY(record_projection(*projection, recorder, &convolved));
      return 2;
    }
  }
  if (const auto* block = std::get_if<plan::AttentionBlock>(&launches.front())) {
    const auto* projection = projection_of(block->output, next, recorder);
    if (projection != nullptr && !projection->norm &&
        applies_gate(*block, *projection->input_gate, recorder)) {
      HEARTH_TRY(record_attention_block(*block, &*projection->input_gate, recorder));
      HEARTH_TRY(record_plain(*projection, recorder));
      return 2;
    }
  }
  if (const auto* launch = std::get_if<plan::OpLaunch>(&launches.front())) {
    const auto* gate = next == nullptr ? nullptr : std::get_if<plan::ExpertGate>(next);
    if (std::holds_alternative<graph::Router>(launch->op) && gate != nullptr &&
        takes_expert_gate(*launch, *gate, recorder)) {
      record_routed_gate(*launch, *gate, recorder);
      return 2;
    }
    if (const auto of_row = projection_of_row(*launch, next, recorder)) {
      HEARTH_TRY(record_projection(*of_row, recorder));
      return 2;
    }
    const auto* delta = std::get_if<graph::DeltaRule>(&launch->op);
    const auto* projection =
        delta == nullptr ? nullptr : projection_of(launch->output, next, recorder);
    if (projection != nullptr && projection->norm &&
        applies_norm(*delta, *launch, *projection->norm, *projection->input_gate, recorder)) {
      record_normed_delta_rule(*delta, *launch, *projection->norm, *projection->input_gate,
                               recorder);
      HEARTH_TRY(record_plain(*projection, recorder));
      return 2;
    }
  }
  return 0;
}

}  // namespace hearth::backend::gpu
