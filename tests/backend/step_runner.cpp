#include "tests/backend/step_runner.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <random>

#include <gtest/gtest.h>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/kernels/kernel_set.h"
#include "backend/reference/reference_backend.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/format.h"

namespace hearth::backend {
namespace {

/// One step in storage of its own.
struct Step {
  std::vector<TokenId> tokens;
  std::vector<std::int32_t> positions;
  std::vector<std::int32_t> sequences;
  std::vector<std::int32_t> logit_rows;
};

/// The chunk [begin, begin + chunk) of every sequence, one sequence after another, the last first.
Step make_step(const std::vector<Tokens>& prompts, std::size_t begin, const Schedule& schedule) {
  Step step;
  for (std::size_t i = prompts.size(); i-- > 0;) {
    const std::size_t end = std::min(begin + schedule.chunk, prompts[i].size());
    for (std::size_t position = begin; position < end; ++position) {
      if (position % schedule.logits_every == 0 || position + 1 == prompts[i].size()) {
        step.logit_rows.push_back(static_cast<std::int32_t>(step.tokens.size()));
      }
      step.tokens.push_back(prompts[i][position]);
      step.positions.push_back(static_cast<std::int32_t>(position));
      step.sequences.push_back(static_cast<std::int32_t>(i));
    }
  }
  return step;
}

}  // namespace

Tokens random_tokens(std::size_t n, std::int64_t vocab, std::uint32_t seed) {
  std::mt19937 random(seed);
  Tokens tokens(n);
  for (auto& token : tokens) {
    token = static_cast<TokenId>(random() % static_cast<std::uint32_t>(vocab));
  }
  return tokens;
}

Logits run_schedule(Backend& backend, const graph::TinyModel& model, DType kv_dtype,
                    const std::vector<Tokens>& sequences, const Schedule& schedule) {
  std::size_t longest = 0;
  for (const auto& tokens : sequences) {
    longest = std::max(longest, tokens.size());
  }
  const auto blocks_each = ceil_div(static_cast<std::int64_t>(longest), graph::kv_block_tokens);
  const auto n_blocks = blocks_each * static_cast<std::int64_t>(sequences.size());
  std::vector<std::int32_t> block_tables(static_cast<std::size_t>(n_blocks));
  for (std::size_t i = 0; i < block_tables.size(); ++i) {
    block_tables[i] = static_cast<std::int32_t>(i);
  }
  std::shuffle(block_tables.begin(), block_tables.end(), std::mt19937(5));

  // Slots in use stand in no order, beside others, and are dirty from a run before.
  const auto n_sequences = static_cast<std::int32_t>(sequences.size());
  std::vector<std::int32_t> state_slots;
  for (std::int32_t i = 0; i < n_sequences; ++i) {
    state_slots.push_back(n_sequences - i);
  }
  auto session = backend
                     .open(model.weights(),
                           {model.kv_cache(kv_dtype, n_blocks), model.states(n_sequences + 1), {}})
                     .value();
  const auto rows =
      static_cast<std::int64_t>(std::min(schedule.chunk, longest) * sequences.size()) +
      schedule.spare_bucket_rows;
  const auto plan =
      plan::make_plan(model.record({rows, rows}), model.weights(), backend.plan_options());
  auto executable = session->compile(plan).value();

  Logits collected(sequences.size());
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    collected[i].resize(sequences[i].size());
  }
  const auto vocab = static_cast<std::size_t>(model.size().vocab);
  for (std::size_t begin = 0; begin < longest; begin += schedule.chunk) {
    const Step step = make_step(sequences, begin, schedule);
    const auto run = executable->run({.tokens = step.tokens,
                                      .positions = step.positions,
                                      .sequences = step.sequences,
                                      .logit_rows = step.logit_rows,
                                      .block_tables = block_tables,
                                      .table_stride = blocks_each,
                                      .state_slots = state_slots});
    if (!run) {
      ADD_FAILURE() << run.error().message;
      return collected;
    }
    const auto logits = run.value();
    HEARTH_ASSERT(logits.size() == step.logit_rows.size() * vocab);
    for (std::size_t i = 0; i < step.logit_rows.size(); ++i) {
      const auto row = static_cast<std::size_t>(step.logit_rows[i]);
      const auto values = logits.subspan(i * vocab, vocab);
      collected[static_cast<std::size_t>(step.sequences[row])]
               [static_cast<std::size_t>(step.positions[row])]
                   .assign(values.begin(), values.end());
    }
  }
  return collected;
}

Logits reference_logits(const graph::TinyModel& model, DType kv_dtype,
                        const std::vector<Tokens>& sequences) {
  const auto reference = make_reference_backend();
  Logits logits;
  for (const auto& tokens : sequences) {
    logits.push_back(
        run_schedule(*reference, model, kv_dtype, {tokens}, {.chunk = tokens.size()}).front());
  }
  return logits;
}

void expect_varied(const Logits& logits) {
  const auto& row = logits.front().back();
  EXPECT_TRUE(std::isfinite(row.front()));
  EXPECT_NE(row.front(), row.back());
  EXPECT_NE(logits.front().front().front(), row.front());
}

std::string first_difference(const Logits& expected, const Logits& actual) {
  for (std::size_t sequence = 0; sequence < actual.size(); ++sequence) {
    for (std::size_t position = 0; position < actual[sequence].size(); ++position) {
      const auto& want = expected[sequence][position];
      const auto& got = actual[sequence][position];
      for (std::size_t token = 0; token < got.size(); ++token) {
        if (std::bit_cast<std::uint32_t>(want[token]) != std::bit_cast<std::uint32_t>(got[token])) {
          return format("sequence {}, position {}, token {}: expected {}, got {}", sequence,
                        position, token, want[token], got[token]);
        }
      }
    }
  }
  return "";
}

std::vector<std::string_view> kernel_set_names() {
  std::vector<std::string_view> names;
  for (const auto& set : cpu::supported_kernel_sets()) {
    names.push_back(set.name);
  }
  return names;
}

std::vector<std::string_view> kernel_sets_for_every_type() {
  const auto names = kernel_set_names();
  return all_or_some(names, {names.front()});
}

std::unique_ptr<Backend> cpu_backend(std::string_view kernels, int n_threads, WeightLayout layout) {
  setenv("HEARTH_CPU_KERNELS", std::string(kernels).c_str(), 1);
  auto backend = make_cpu_backend({.n_threads = n_threads, .layout = layout});
  unsetenv("HEARTH_CPU_KERNELS");
  return std::move(backend).value();
}

}  // namespace hearth::backend
