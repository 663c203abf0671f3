#include "engine/selftest/selftest.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>
#include <set>
#include <utility>

#include "backend/reference/reference_backend.h"
#include "engine/step_block.h"

namespace hearth::engine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array<std::int64_t, 5> chunks{70, 1, 5, 3, 1};  // rows of one step after another
constexpr ProbeSize timed_size{.width = 2048,
                               .hidden = 512,
                               .n_heads = 16,
                               .n_kv_heads = 2,
                               .head_dim = 256,
                               .n_state_heads = 32,
                               .state_dim = 128,
                               .n_experts = 32,
                               .n_used = 8,
                               .n_repeats = 24};  // beyond any cache, with all types
constexpr std::int64_t timed_position = 1023;
constexpr int n_timed_steps = 30;

/// A probe on a backend, and the one sequence that it runs.
class ProbeRun {
 public:
  static Result<std::unique_ptr<ProbeRun>> create(const Probe& probe, backend::Backend& backend,
                                                  std::int64_t n_positions) {
    std::unique_ptr<ProbeRun> run(new ProbeRun(probe, backend));
    const auto caches = probe.caches(n_positions);
    run->table_.resize(static_cast<std::size_t>(caches.kv.n_blocks));
    std::iota(run->table_.begin(), run->table_.end(), 0);
    run->options_.kv_dtype = caches.kv.dtype;
    HEARTH_TRY(backend.check(probe.weights()));
    HEARTH_ASSIGN(run->session_, backend.open(probe.weights(), caches));
    return run;
  }

  /// Compiled for steps of so many rows.
  Result<plan::StepCost> compile(std::int64_t n_rows) {
    HEARTH_ASSIGN(const auto graph, probe_.record({n_rows, n_rows}));
    const auto plan = plan::make_plan(graph, probe_.weights(), options_);
    HEARTH_ASSIGN(executable_, session_->compile(plan));
    return plan.cost;
  }

  /// What all rows of a step give.
  Result<std::span<const float>> step(std::int64_t first_position, std::int64_t n_rows) {
    step_.clear();
    const auto sequence = step_.add_sequence(table_, /*state_slot=*/0);
    for (std::int64_t i = 0; i < n_rows; ++i) {
      const std::int64_t position = first_position + i;
      step_.add_row(sequence,
                    {.token = TokenId{static_cast<std::int32_t>(7 * position % Probe::n_tokens)},
                     .position = position,
                     .wants_logits = true});
    }
    return executable_->run(step_.view());
  }

  [[nodiscard]] const backend::Executable& executable() const { return *executable_; }

 private:
  ProbeRun(const Probe& probe, backend::Backend& backend)
      : probe_(probe), options_(backend.plan_options()) {}

  const Probe& probe_;
  plan::Options options_;
  std::vector<std::int32_t> table_;
  StepBlock step_;
  std::unique_ptr<backend::Session> session_;
  std::unique_ptr<backend::Executable> executable_;  // ends first
};

struct Outputs {
  std::vector<float> values;
  std::set<std::string_view> kernels;
};

Result<Outputs> outputs_of(const Probe& probe, backend::Backend& backend) {
  const std::int64_t n_positions = std::accumulate(chunks.begin(), chunks.end(), std::int64_t{0});
  HEARTH_ASSIGN(const auto run, ProbeRun::create(probe, backend, n_positions));
  Outputs outputs;
  std::int64_t position = 0;
  for (const std::int64_t n_rows : chunks) {
    HEARTH_TRY(run->compile(n_rows));
    HEARTH_ASSIGN(const auto values, run->step(position, n_rows));
    outputs.values.insert(outputs.values.end(), values.begin(), values.end());
    const auto kernels = run->executable().kernels();
    outputs.kernels.insert(kernels.begin(), kernels.end());
    position += n_rows;
  }
  return outputs;
}

/// The largest difference by the largest expected value; infinite where a number is none.
double largest_error(const std::vector<float>& expected, const std::vector<float>& actual) {
  double largest = 0;
  double scale = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double error = std::abs(static_cast<double>(expected[i]) - actual[i]);
    largest = std::isnan(error) ? HUGE_VAL : std::max(largest, error);
    scale = std::max(scale, std::abs(static_cast<double>(expected[i])));
  }
  return largest / scale;
}

Result<double> speed_of(const ProbeKind& kind, backend::Backend& backend) {
  Probe probe(timed_size);
  kind.build(probe);
  HEARTH_ASSIGN(const auto run, ProbeRun::create(probe, backend, timed_position + 1));
  HEARTH_ASSIGN(const auto cost, run->compile(1));
  std::vector<double> seconds;
  for (int i = 0; i < n_timed_steps; ++i) {
    const auto start = Clock::now();
    HEARTH_TRY(run->step(timed_position, 1));
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::ranges::nth_element(seconds, seconds.begin() + n_timed_steps / 2);
  return static_cast<double>(cost.bytes(1, timed_position + 1)) / seconds[n_timed_steps / 2];
}

ProbeOutcome not_run(const Error& error) {
  using enum ProbeOutcome::Kind;
  return {.kind = error.code == ErrorCode::unsupported ? refused : failed,
          .message = error.message};
}

}  // namespace

ProbeOutcome run_probe(const ProbeKind& kind, backend::Backend& backend, bool timed) {
  Probe probe({});
  kind.build(probe);
  const auto reference = backend::make_reference_backend();
  const auto expected = outputs_of(probe, *reference);
  const auto actual = expected ? outputs_of(probe, backend) : expected;
  if (!actual) {
    return not_run(actual.error());
  }
  if (!std::ranges::all_of(expected->values, [](float x) { return std::isfinite(x); })) {
    return not_run({ErrorCode::internal, "the reference gives values that are no numbers"});
  }
  const auto bits = [](float x) { return std::bit_cast<std::uint32_t>(x); };
  const bool same = std::ranges::equal(expected->values, actual->values, {}, bits, bits);
  ProbeOutcome outcome{.kind = same ? ProbeOutcome::Kind::same_bits : ProbeOutcome::Kind::differs,
                       .largest_error = largest_error(expected->values, actual->values),
                       .kernels = {actual->kernels.begin(), actual->kernels.end()}};
  if (timed) {
    const auto speed = speed_of(kind, backend);
    if (!speed) {
      return not_run(speed.error());
    }
    outcome.bytes_per_s = *speed;
  }
  return outcome;
}

}  // namespace hearth::engine
