#include "graph/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/graph/tiny_model.h"

namespace hearth::graph {
namespace {

TEST(GraphBuilder, KeepsTheFirstFaultAndReturnsItAtTheEnd) {
  RandomWeights weights(1);
  const WeightId table = weights.add("token_embd.weight", DType::f32, {9, 8});
  const WeightId wrong = weights.add("blk.0.ffn_up.weight", DType::f32, {8, 7});
  const WeightId norm = weights.add_uniform("output_norm.weight", {3}, 0, 1);
  GraphBuilder g(weights.table(), {.rows = 4, .logit_rows = 1});
  const ValueId x = matmul(g, embed(g, table, 1.0f), wrong);
  const auto graph = g.finish(rms_norm(g, x, norm, 1e-5f));
  ASSERT_FALSE(graph.has_value());
  EXPECT_THAT(graph.error().message, testing::HasSubstr("'blk.0.ffn_up.weight'"));
}

TEST(Graph, PrintsALinePerNode) {
  RandomWeights weights(1);
  const WeightId table = weights.add("token_embd.weight", DType::f32, {9, 8});
  GraphBuilder g(weights.table(), {.rows = 4, .logit_rows = 2});
  const ValueId x = embed(g, table, 1.0f);
  const auto graph = g.finish(matmul(g, select_rows(g, add(g, x, x)), table)).value();
  EXPECT_EQ(to_string(graph),
            "%0 [rows 4, 8] = embed()\n"
            "%1 [rows 4, 8] = add(%0, %0)\n"
            "%2 [logit rows 2, 8] = select_rows(%1)\n"
            "%3 [logit rows 2, 9] = matmul(%2)\n");
}

}  // namespace
}  // namespace hearth::graph
