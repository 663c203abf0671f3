#include "backend/gpu/kernels/delta_rule.h"

#include <gtest/gtest.h>

#include "tests/backend/gpu/kernels/kernel_runner.h"
#include "tests/graph/op_runner.h"
#include "tests/graph/tiny_model.h"

namespace hearth::backend::gpu {
namespace {

using graph::Matrix;
using graph::random_matrix;

constexpr std::int64_t n_key_heads = 2;
constexpr std::int64_t n_value_heads = 4;
constexpr std::int64_t value_dim = 16;  // what the reference takes
constexpr std::int64_t features = 2 * n_key_heads * DELTA_RULE_KEY_DIM + n_value_heads * value_dim;
constexpr std::size_t slot_floats = n_value_heads * value_dim * DELTA_RULE_KEY_DIM;

class GpuDeltaRule : public testing::TestWithParam<graph::HeadOrder> {
 protected:
  GpuDeltaRule() : weights_(5) {
    op_.params = {.layer = 0,
                  .n_key_heads = n_key_heads,
                  .n_value_heads = n_value_heads,
                  .key_dim = DELTA_RULE_KEY_DIM,
                  .value_dim = value_dim,
                  .order = GetParam()};
    op_.rate = weights_.add_uniform("ssm_a", Shape{n_value_heads}, -2, -0.01f);
    op_.bias = weights_.add_uniform("ssm_dt", Shape{n_value_heads}, -1, 1);
  }

  /// Rows of a prompt, one or several sequences; memory before and after.
  std::vector<float> run(const Matrix& qkv, const Matrix& write_gate, const Matrix& decay_gate,
                         const std::vector<std::int32_t>& row_starts,
                         const std::vector<std::int32_t>& positions,
                         const std::vector<std::int32_t>& slots, std::vector<float>& memory) {
    const auto n_sequences = static_cast<u32>(slots.size());
    const auto results = run_everywhere(
        call(KernelId::delta_rule_f32,
             {contents(qkv.data), contents(write_gate.data), contents(decay_gate.data),
              weights_.bytes(op_.rate), weights_.bytes(op_.bias), contents(row_starts),
              contents(positions), contents(slots), contents(memory),
              poisoned(static_cast<std::size_t>(qkv.rows * n_value_heads * value_dim))},
             DeltaRuleParams{n_key_heads, n_value_heads, value_dim,
                             GetParam() == graph::HeadOrder::tiled ? 1u : 0u},
             {value_dim / DELTA_RULE_COLUMNS, n_value_heads, n_sequences}, {128}));
    memory = values<float>(results[8]);
    return values<float>(results[9]);
  }

  graph::RandomWeights weights_;
  graph::DeltaRule op_;
};

TEST_P(GpuDeltaRule, AgreesWithTheReferenceOverTwoSequencesAndTwoSteps) {
  constexpr std::int64_t n_rows = 5;  // three of one sequence, two of the other
  const Matrix qkv = random_matrix(n_rows, features, 1);
  const Matrix write_gate = random_matrix(n_rows, n_value_heads, 2);
  const Matrix decay_gate = random_matrix(n_rows, n_value_heads, 3);
  graph::HostStateCache cache({3,
                               {{.n_heads = n_value_heads,
                                 .key_dim = DELTA_RULE_KEY_DIM,
                                 .value_dim = value_dim,
                                 .conv_channels = 1,
                                 .conv_taps = 2}}});
  std::vector<float> memory(3 * slot_floats, NAN);  // nothing of a slot's last owner may be seen
  for (const std::int32_t first : {0, 3}) {
    graph::OwnedStep step(n_rows);
    step.positions = {first, first + 1, first + 2, first == 0 ? 0 : 2, first == 0 ? 1 : 3};
    step.sequences = {0, 0, 0, 1, 1};
    step.state_slots = {2, 0};
    const auto expected =
        graph::run_op(op_, weights_.table(), {qkv, write_gate, decay_gate}, step, cache).value();
    const auto y =
        run(qkv, write_gate, decay_gate, {0, 3, 5}, step.positions, step.state_slots, memory);
    EXPECT_LT(relative_error(y, expected.data), 1e-6);
  }
}

TEST_P(GpuDeltaRule, GivesTheSameBitsForAPromptInPieces) {
  const Matrix qkv = random_matrix(3, features, 1);
  const Matrix write_gate = random_matrix(3, n_value_heads, 2);
  const Matrix decay_gate = random_matrix(3, n_value_heads, 3);
  std::vector<float> memory(slot_floats);
  const auto whole_prompt = run(qkv, write_gate, decay_gate, {0, 3}, {0, 1, 2}, {0}, memory);
  const auto memory_of_whole = memory;
  std::vector<float> in_pieces;
  const auto rows = [](const Matrix& x, std::int64_t first, std::int64_t n) {
    const auto begin = x.data.begin() + first * x.features;
    return Matrix{n, x.features, {begin, begin + n * x.features}};
  };
  for (const auto& [first, n] : {std::pair<std::int32_t, std::int32_t>(0, 2), {2, 1}}) {
    const auto piece = run(rows(qkv, first, n), rows(write_gate, first, n),
                           rows(decay_gate, first, n), {0, n}, {first, first + 1}, {0}, memory);
    in_pieces.insert(in_pieces.end(), piece.begin(), piece.end());
  }
  EXPECT_EQ(in_pieces, whole_prompt);
  EXPECT_EQ(memory, memory_of_whole);
}

INSTANTIATE_TEST_SUITE_P(Orders, GpuDeltaRule,
                         testing::ValuesIn(shapes({graph::HeadOrder::grouped,
                                                   graph::HeadOrder::tiled})));

}  // namespace
}  // namespace hearth::backend::gpu
