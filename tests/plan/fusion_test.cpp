/// What the passes make of model graphs, counted: independent of the machine.

#include <algorithm>

#include <gtest/gtest.h>

#include "plan/plan.h"
#include "quant/registry.h"
#include "tests/graph/tiny_model.h"

namespace hearth::plan {
namespace {

using graph::Family;
using graph::GraphBuilder;
using graph::RandomWeights;
using graph::TinyModel;

constexpr graph::RowBucket bucket{.rows = 8, .logit_rows = 2};

std::vector<std::string> names(const Plan& plan) {
  std::vector<std::string> result;
  for (const auto& launch : plan.launches) {
    result.emplace_back(launch_name(launch));
  }
  return result;
}

Plan plan_of(const graph::Graph& graph, const graph::WeightTable& weights) {
  return make_plan(graph, weights, {});
}

TEST(Fusion, RunsALlamaLayerInFiveLaunches) {
  for (const std::int64_t n_layers : {1, 2, 5}) {
    const TinyModel model(Family::llama, {.n_layers = n_layers}, {DType::f16});
    const Plan plan = plan_of(model.record(bucket), model.weights());
    EXPECT_EQ(plan.cost.n_launches, 5 * n_layers + 3);  // embed, select rows, head
  }
  const TinyModel model(Family::llama, {.n_layers = 1}, {DType::f16});
  EXPECT_EQ(names(plan_of(model.record(bucket), model.weights())),
            (std::vector<std::string>{"embed", "projection", "attention_block", "projection",
                                      "projection", "projection", "select_rows", "projection"}));
}

TEST(Fusion, RunsAGemmaLayerInSevenLaunches) {
  for (const std::int64_t n_layers : {1, 4}) {
    const TinyModel model(Family::gemma, {.n_layers = n_layers}, {DType::f16});
    const Plan plan = plan_of(model.record(bucket), model.weights());
    EXPECT_EQ(plan.cost.n_launches, 7 * n_layers + 4);  // and a softcap on the logits
  }
  const TinyModel model(Family::gemma, {.n_layers = 1}, {DType::f16});
  EXPECT_EQ(names(plan_of(model.record(bucket), model.weights())),
            (std::vector<std::string>{"embed", "projection", "attention_block", "projection",
                                      "norm_add", "projection", "projection", "norm_add",
                                      "select_rows", "projection", "softcap"}));
}

TEST(Fusion, RunsARecurrentLayerWithExpertsInNineLaunchesAndAnAttentionLayerInSeven) {
  const TinyModel model(Family::hybrid, {.n_layers = 2}, {DType::f16});
  EXPECT_EQ(names(plan_of(model.record(bucket), model.weights())),
            (std::vector<std::string>{"embed",
                                      // normed input to q, k, v, gate and both gates of the rule
                                      "projection", "causal_conv", "delta_rule",
                                      "projection",  // of the normed, gated heads, with residual
                                      "projection",  // router and the shared expert's first half
                                      "router", "expert_gate", "expert_down",
                                      "projection",  // shared expert's second half
                                      "projection", "attention_block", "projection",
                                      // no shared expert
                                      "projection", "router", "expert_gate", "expert_down",
                                      "select_rows", "projection"}));
}

TEST(Fusion, LeavesEveryNodeALaunchOfItsOwnWhenSwitchedOff) {
  const TinyModel model(Family::gemma, {}, {DType::f16});
  const auto graph = model.record(bucket);
  const Plan plan = make_plan(graph, model.weights(), {.fuse = false});
  ASSERT_EQ(plan.launches.size(), graph.nodes.size());
  for (const auto& launch : plan.launches) {
    EXPECT_TRUE(std::holds_alternative<OpLaunch>(launch));
  }
}

TEST(Fusion, ReadsOnlyWhatEarlierLaunchesWrote) {
  for (const auto family : {Family::llama, Family::gemma}) {
    const TinyModel model(family, {}, {DType::f16});
    const Plan plan = plan_of(model.record(bucket), model.weights());
    std::vector<bool> written(plan.values.size(), false);
    for (const auto& launch : plan.launches) {
      for (const auto value : reads(launch)) {
        EXPECT_TRUE(written[graph::index(value)]) << to_string(plan);
      }
      for (const auto value : writes(launch)) {
        EXPECT_FALSE(written[graph::index(value)]) << to_string(plan);
        written[graph::index(value)] = true;
      }
    }
    EXPECT_TRUE(written[graph::index(plan.result)]);
  }
}

/// Weights for graphs of a few nodes: everything is 8 wide.
struct SmallGraph {
  SmallGraph() : g(weights.table(), bucket), x(embed(g, table, 1.0f)) {}

  Plan finish(ValueId result) { return plan_of(g.finish(result).value(), weights.table()); }

  RandomWeights weights{1};
  WeightId table = weights.add("table", DType::f32, {9, 8});
  WeightId square = weights.add("square", DType::f32, {8, 8});
  WeightId norm = weights.add_uniform("norm", {8}, 0, 1);
  GraphBuilder g;
  ValueId x;
};

TEST(Fusion, KeepsANormThatSomethingElseReadsToo) {
  SmallGraph s;
  const ValueId normed = rms_norm(s.g, s.x, s.norm, 1e-5f);
  const ValueId product = matmul(s.g, normed, s.square);
  const Plan plan = s.finish(mul(s.g, product, normed));
  EXPECT_EQ(names(plan), (std::vector<std::string>{"embed", "rms_norm", "projection", "mul"}));
}

TEST(Fusion, KeepsANormWhoseResultIsTheResultOfTheGraph) {
  SmallGraph s;
  const ValueId normed = rms_norm(s.g, s.x, s.norm, 1e-5f);
  matmul(s.g, normed, s.square);
  EXPECT_EQ(names(s.finish(normed)), (std::vector<std::string>{"embed", "rms_norm", "projection"}));
}

TEST(Fusion, KeepsAnActivationThatIsReadTwice) {
  SmallGraph s;
  const ValueId activated =
      activation(s.g, graph::ActivationKind::silu, matmul(s.g, s.x, s.square));
  const ValueId gated = mul(s.g, activated, matmul(s.g, s.x, s.square));
  const Plan plan = s.finish(add(s.g, gated, activated));
  EXPECT_EQ(names(plan),
            (std::vector<std::string>{"embed", "projection", "activation", "mul", "add"}));
}

TEST(Fusion, TakesTheGateInEitherOrder) {
  SmallGraph s;
  const ValueId up = matmul(s.g, s.x, s.square);
  const ValueId gate = matmul(s.g, s.x, s.square);
  const Plan plan = s.finish(mul(s.g, up, activation(s.g, graph::ActivationKind::gelu_tanh, gate)));
  ASSERT_EQ(names(plan), (std::vector<std::string>{"embed", "projection"}));
  const auto& projection = std::get<Projection>(plan.launches[1]);
  EXPECT_EQ(projection.gate, graph::ActivationKind::gelu_tanh);
  EXPECT_EQ(projection.parts[0].output, gate);
  EXPECT_EQ(projection.parts[1].output, up);
}

TEST(Fusion, KeepsAnAddWhoseOtherOperandComesLater) {
  SmallGraph s;
  const ValueId product = matmul(s.g, s.x, s.square);
  const ValueId later = softcap(s.g, 1.0f, s.x);
  const Plan plan = s.finish(add(s.g, product, later));
  EXPECT_EQ(names(plan), (std::vector<std::string>{"embed", "projection", "softcap", "add"}));
}

TEST(Fusion, KeepsAnAddOfAProductToItself) {
  SmallGraph s;
  const ValueId product = matmul(s.g, s.x, s.square);
  EXPECT_EQ(names(s.finish(add(s.g, product, product))),
            (std::vector<std::string>{"embed", "projection", "add"}));
}

TEST(Fusion, KeepsAProductThatIsReadBesideItsResidual) {
  SmallGraph s;
  const ValueId product = matmul(s.g, s.x, s.square);
  const ValueId sum = add(s.g, s.x, product);
  EXPECT_EQ(names(s.finish(mul(s.g, sum, product))),
            (std::vector<std::string>{"embed", "projection", "add", "mul"}));
}

TEST(Fusion, KeepsRotationsThatDifferBetweenQueriesAndKeys) {
  SmallGraph s;
  const graph::RopeParams rotation{.head_dim = 8, .n_rot = 8};
  const graph::RopeParams faster{.head_dim = 8, .n_rot = 8, .base = 100.0f};
  const ValueId q = rope(s.g, matmul(s.g, s.x, s.square), rotation);
  const ValueId k = rope(s.g, matmul(s.g, s.x, s.square), faster);
  const ValueId v = matmul(s.g, s.x, s.square);
  const graph::AttentionParams params{.n_heads = 1, .n_kv_heads = 1, .head_dim = 8, .scale = 1};
  EXPECT_EQ(names(s.finish(attention(s.g, params, q, k, v))),
            (std::vector<std::string>{"embed", "projection", "rope", "rope", "attention_block"}));
}

TEST(StepCost, CountsEveryWeightOnceAndEmbeddingsByTheRow) {
  const TinyModel model(Family::gemma, {}, {quant::find("Q4_K")->dtype, DType::f16});
  const Plan fused = plan_of(model.record(bucket), model.weights());
  const Plan unfused = make_plan(model.record(bucket), model.weights(), {.fuse = false});
  std::int64_t weight_bytes = 0;
  for (const auto& weight : model.weights()) {
    if (weight.name != "token_embd.weight") {
      weight_bytes += static_cast<std::int64_t>(weight.tensor.data.size());
    }
  }
  EXPECT_EQ(fused.cost.weight_bytes, weight_bytes);
  EXPECT_EQ(unfused.cost.weight_bytes, weight_bytes);
  EXPECT_EQ(fused.cost.embed_row_bytes, 144);  // one block of Q4_K
}

TEST(StepCost, CountsTheMatricesOfChosenExpertsAlone) {
  const TinyModel model(Family::hybrid, {.n_layers = 2, .n_experts = 5, .n_used = 2},
                        {quant::find("Q4_K")->dtype});
  for (const bool fuse : {true, false}) {
    const auto cost = make_plan(model.record(bucket), model.weights(), {.fuse = fuse}).cost;
    std::int64_t all = cost.weight_bytes;
    for (const auto& launch : cost.experts) {
      EXPECT_EQ(launch.bytes(1), 2 * launch.expert_bytes);
      all += 5 * launch.expert_bytes;
    }
    std::int64_t weight_bytes = 0;
    for (const auto& weight : model.weights()) {
      if (weight.name != "token_embd.weight") {
        weight_bytes += static_cast<std::int64_t>(weight.tensor.data.size());
      }
    }
    EXPECT_EQ(all, weight_bytes);
  }
}

TEST(StepCost, ExpectsRowsToShareSomeOfTheirExperts) {
  const ExpertCost cost{.n_experts = 5, .n_used = 2, .expert_bytes = 1000};
  EXPECT_EQ(cost.bytes(1), 2000);
  EXPECT_EQ(cost.bytes(2), 3200);    // each expert is left out by both with (3/5)^2
  EXPECT_EQ(cost.bytes(3), 3920);    // and by three with (3/5)^3
  EXPECT_EQ(cost.bytes(100), 5000);  // all there are
  const ExpertCost all{.n_experts = 3, .n_used = 3, .expert_bytes = 7};
  EXPECT_EQ(all.bytes(1), 21);
  EXPECT_EQ(all.bytes(9), 21);
}

TEST(StepCost, CountsRecurrentStateReadAndWrittenForEachSequence) {
  const TinyModel model(Family::hybrid, {.n_layers = 2}, {DType::f16});
  const auto cost = plan_of(model.record(bucket), model.weights()).cost;
  EXPECT_EQ(cost.state_bytes, model.states(1).bytes_per_slot());
  std::int64_t row = cost.bytes(2, 0) - cost.bytes(1, 0);
  for (const auto& launch : cost.experts) {
    row -= launch.bytes(2) - launch.bytes(1);
  }
  EXPECT_EQ(row, cost.embed_row_bytes + cost.kv.front().key_bytes + 2 * cost.state_bytes);
}

TEST(StepCost, StopsCountingKeysAtTheWindow) {
  // Two layers of 2 heads of 64: 512 bytes per key and value in f16. The first sees 24 keys.
  const TinyModel model(Family::gemma, {.n_layers = 2, .window = 24}, {DType::f16});
  const auto& cost = plan_of(model.record(bucket), model.weights()).cost;
  const std::int64_t fixed = cost.weight_bytes;
  const std::int64_t row = cost.embed_row_bytes;
  EXPECT_EQ(cost.bytes(1, 10), fixed + row + 512 * (10 + 1) * 2);
  EXPECT_EQ(cost.bytes(1, 1000), fixed + row + 512 * ((24 + 1) + (1000 + 1)));
  EXPECT_EQ(cost.bytes(3, 1000), fixed + 3 * (cost.bytes(1, 1000) - fixed));
}

TEST(StepCost, CountsTheCacheInItsOwnType) {
  const TinyModel model(Family::llama, {.n_layers = 1}, {DType::f16});
  const auto graph = model.record(bucket);
  const auto half = make_plan(graph, model.weights(), {.kv_dtype = DType::f16}).cost;
  const auto full = make_plan(graph, model.weights(), {.kv_dtype = DType::f32}).cost;
  EXPECT_EQ(2 * half.kv.front().key_bytes, full.kv.front().key_bytes);
}

}  // namespace
}  // namespace hearth::plan
