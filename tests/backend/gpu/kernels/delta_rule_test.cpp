#include "backend/gpu/kernels/delta_rule.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/backend/gpu/kernels/kernel_runner.h"
#include "tests/backend/gpu/kernels/recurrent_step.h"
#include "tests/graph/tiny_model.h"

namespace hearth::backend::gpu {
namespace {

using graph::random_matrix;

struct Shapes {
  KernelId kernel;
  std::int64_t key_dim;
  std::int64_t value_dim;
  graph::HeadOrder order;
  std::uint32_t columns;  // of a threadgroup
};

constexpr std::int64_t n_key_heads = 2;
constexpr std::int64_t n_value_heads = 4;
constexpr std::size_t n_slots = 4;

class GpuDeltaRule : public testing::TestWithParam<Shapes> {
 protected:
  GpuDeltaRule() : weights_(5) {
    const Shapes& shapes = GetParam();
    op_.params = {.layer = 0,
                  .n_key_heads = n_key_heads,
                  .n_value_heads = n_value_heads,
                  .key_dim = shapes.key_dim,
                  .value_dim = shapes.value_dim,
                  .order = shapes.order};
    op_.rate = weights_.add_uniform("ssm_a", Shape{n_value_heads}, -2, -0.01f);
    op_.bias = weights_.add_uniform("ssm_dt", Shape{n_value_heads}, -1, 1);
    norm_ = {weights_.add_uniform("ssm_norm", Shape{shapes.value_dim}, 0.5f, 1.5f), 1e-6f};
  }

  [[nodiscard]] std::size_t slot_floats() const {
    return static_cast<std::size_t>(n_value_heads * op_.params.key_dim * op_.params.value_dim);
  }

  [[nodiscard]] static bool is_normed() {
    return GetParam().kernel == KernelId::delta_rule_head_f32;
  }

  /// What the kernel's variant makes of what comes out.
  [[nodiscard]] graph::Matrix finished(const graph::Matrix& y, const graph::Matrix& gate) const {
    if (!is_normed()) {
      return y;
    }
    const auto op = [this](const graph::AnyOp& each, const std::vector<graph::Matrix>& inputs) {
      return graph::run_op(each, weights_.table(), inputs).value();
    };
    return op(graph::Mul{},
              {op(norm_, {y}), op(graph::Activation{graph::ActivationKind::silu}, {gate})});
  }

  /// y and the memory after; one sequence is masked.
  std::vector<Contents> run(const RecurrentStep& each, const std::vector<graph::Matrix>& inputs,
                            const graph::Matrix& gate, const Contents& memory) {
    const Shapes& shapes = GetParam();
    const DeltaRuleParams params{
        .n_key_heads = n_key_heads,
        .n_value_heads = n_value_heads,
        .key_dim = static_cast<u32>(shapes.key_dim),
        .value_dim = static_cast<u32>(shapes.value_dim),
        .is_tiled = shapes.order == graph::HeadOrder::tiled ? 1u : 0u,
        .query_scale = 1.0f / std::sqrt(static_cast<float>(shapes.key_dim)),
        .slot_stride = slot_floats()};
    const auto y_floats = static_cast<std::size_t>(n_value_heads * shapes.value_dim);
    std::vector<Contents> buffers{counts(each.n_rows(), 0, each.n_sequences()),
                                  contents(inputs[0].data),
                                  contents(inputs[1].data),
                                  contents(inputs[2].data),
                                  weights_.bytes(op_.rate),
                                  weights_.bytes(op_.bias),
                                  contents(each.row_starts),
                                  contents(each.step.positions),
                                  contents(each.before),
                                  contents(each.after)};
    if (is_normed()) {
      buffers.push_back(weights_.bytes(norm_.weight));
      buffers.push_back(contents(gate.data));
    }
    buffers.push_back(memory);
    buffers.push_back(poisoned((each.n_rows() + 1) * y_floats));
    const DeltaHeadParams head_params{params, norm_.eps,
                                      static_cast<u32>(graph::ActivationKind::silu)};
    const u32 n_threads = (shapes.kernel == KernelId::delta_rule_128_f32 ? 8 : 4) * shapes.columns;
    auto results =
        is_normed()
            ? run_everywhere(call(shapes.kernel, std::move(buffers), head_params,
                                  {n_value_heads, each.n_sequences() + 1}, {DELTA_HEAD_THREADS}))
            : run_everywhere(call(shapes.kernel, std::move(buffers), params,
                                  {static_cast<u32>(shapes.value_dim) / shapes.columns,
                                   n_value_heads, each.n_sequences() + 1},
                                  {n_threads}));
    return {std::move(results.back()), std::move(results[results.size() - 2])};
  }

  /// The reference's memory of a slot in the order of the kernel.
  std::vector<float> reordered(graph::HostStateCache& cache, std::int32_t slot) const {
    const std::int64_t key_dim = op_.params.key_dim;
    const std::int64_t value_dim = op_.params.value_dim;
    std::vector<float> result;
    for (std::int64_t head = 0; head < n_value_heads; ++head) {
      const float* memory = cache.memory(0, slot) + head * key_dim * value_dim;
      for (std::int64_t at = 0; at < key_dim * value_dim; ++at) {
        const std::int64_t i = at / 32 % (key_dim / 4) * 4 + at % 4;
        const std::int64_t j = at / (8 * key_dim) * 8 + at / 4 % 8;
        result.push_back(memory[(j / 16 * key_dim + i) * 16 + j % 16]);
      }
    }
    return result;
  }

  /// The steps, one after the other, give the bits of the reference, and leave its memories.
  void expect_reference(const std::vector<RecurrentStep>& steps) {
    const auto& params = op_.params;
    graph::HostStateCache cache({n_slots,
                                 {{.n_heads = n_value_heads,
                                   .key_dim = params.key_dim,
                                   .value_dim = params.value_dim,
                                   .conv_channels = 1,
                                   .conv_taps = 2}}});
    Contents memory = poisoned(n_slots * slot_floats());  // nothing of a last owner may be seen
    std::uint32_t seed = 1;
    for (const RecurrentStep& each : steps) {
      const std::vector<graph::Matrix> inputs{
          random_matrix(each.n_rows(), 2 * params.key_features() + params.value_features(), seed),
          random_matrix(each.n_rows(), n_value_heads, seed + 1),
          random_matrix(each.n_rows(), n_value_heads, seed + 2)};
      const auto gate = random_matrix(each.n_rows(), params.value_features(), seed + 3);
      seed += 4;
      const auto expected = graph::run_op(op_, weights_.table(), inputs, each.step, cache).value();
      const auto results = run(each, inputs, gate, memory);
      expect_bits(results[0], finished(expected, gate).data);
      memory = results[1];
      const auto slot_bytes = static_cast<std::ptrdiff_t>(slot_floats() * sizeof(float));
      for (const std::int32_t slot : each.after) {
        const auto begin = memory.begin() + slot * slot_bytes;
        expect_bits({begin, begin + slot_bytes}, reordered(cache, slot));
      }
    }
  }

  graph::RandomWeights weights_;
  graph::DeltaRule op_;
  graph::RmsNorm norm_;
};

/// Prompts of several lots of the rows that kernels bring together, which end within a lot, with it
/// and a row after it; then one that leaves memories behind in its middle, at the end of a lot and
/// on both sides of that, and goes on.
std::vector<RecurrentStep> long_steps() {
  std::vector<RecurrentStep> steps;
  steps.emplace_back(std::vector<SequenceRows>{{0, 29, 2, {}}, {0, 16, 0, {}}, {0, 9, 1, {}}});
  std::vector<std::int32_t> targets(26, 2);
  for (const std::size_t row : {3u, 7u, 8u, 15u, 16u, 22u}) {
    targets[row] = 3;
  }
  steps.emplace_back(std::vector<SequenceRows>{{29, 26, 2, targets}, {16, 8, 0, {}}});
  steps.emplace_back(std::vector<SequenceRows>{{52, 3, 3, {}}, {9, 1, 1, {}}});
  return steps;
}

TEST_P(GpuDeltaRule, GivesTheBitsOfTheReferenceAndItsMemory) {
  expect_reference(recurrent_steps());
}

TEST_P(GpuDeltaRule, GivesThemForPromptsOfManyRows) {
  expect_reference(long_steps());
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, GpuDeltaRule,
    testing::ValuesIn(
        shapes<Shapes>({{KernelId::delta_rule_128_f32, 128, 32, graph::HeadOrder::grouped, 32},
                        {KernelId::delta_rule_head_f32, 128, 128, graph::HeadOrder::tiled, 128},
                        {KernelId::delta_rule_128_f32, 128, 32, graph::HeadOrder::tiled, 16},
                        {KernelId::delta_rule_f32, 256, 16, graph::HeadOrder::tiled, 16},
                        {KernelId::delta_rule_f32, 20, 48, graph::HeadOrder::grouped, 16}})));

}  // namespace
}  // namespace hearth::backend::gpu
