#include "graph/ops/embed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quant/registry.h"
#include "tests/graph/op_runner.h"
#include "tests/graph/tiny_model.h"

namespace hearth::graph {
namespace {

TEST(Embed, GathersTheRowsOfTheTokensTimesTheScale) {
  RandomWeights weights(1);
  for (const auto* type : {"F32", "F16", "Q8_0", "Q6_K"}) {
    const auto dtype = quant::find(type)->dtype;
    const WeightId table = weights.add("token_embd.weight", dtype, {5, 256});
    std::vector<float> decoded(5 * 256);
    quant::decode(dtype, tensor(weights.table(), table).data, decoded);
    OwnedStep step(3);
    step.tokens = {TokenId{4}, TokenId{0}, TokenId{4}};
    const auto out = run_op(Embed{table, 3.0f}, weights.table(), {}, step).value();
    ASSERT_EQ(out.rows, 3);
    ASSERT_EQ(out.features, 256);
    for (std::int64_t row = 0; row < 3; ++row) {
      const std::int64_t token = row == 1 ? 0 : 4;
      for (std::int64_t i = 0; i < 256; ++i) {
        EXPECT_EQ(out.at(row, i), decoded[static_cast<std::size_t>(token * 256 + i)] * 3.0f);
      }
    }
  }
}

TEST(Embed, RefusesATableThatIsNoMatrixOfNumbers) {
  RandomWeights weights(1);
  const WeightId vector = weights.add("token_embd.weight", DType::f32, {256});
  const auto out = run_op(Embed{vector, 1.0f}, weights.table(), {}, OwnedStep(1));
  ASSERT_FALSE(out.has_value());
  EXPECT_THAT(out.error().message,
              testing::AllOf(testing::HasSubstr("'token_embd.weight'"), testing::HasSubstr("[256]"),
                             testing::HasSubstr("[vocab, embed]")));
}

}  // namespace
}  // namespace hearth::graph
