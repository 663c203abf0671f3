#include "backend/gpu/kernels/embed.h"

#include <gtest/gtest.h>

#include "tests/backend/gpu/kernels/weight_types.h"
#include "tests/graph/tiny_model.h"

namespace hearth::backend::gpu {
namespace {

class GpuEmbed : public testing::TestWithParam<WeightType> {};

TEST_P(GpuEmbed, GivesTheBitsOfTheReference) {
  graph::RandomWeights weights(1);
  const auto table = weights.add("embed", GetParam().dtype(), {7, 1280});
  graph::OwnedStep step(3);
  step.tokens = {TokenId{6}, TokenId{0}, TokenId{3}};
  const auto expected = graph::run_op(graph::Embed{table, 1.7f}, weights.table(), {}, step).value();
  const auto results = run_everywhere(call(
      GetParam().embed,
      {counts(3), contents(step.tokens), weights.bytes(table), poisoned(std::size_t{5} * 1280)},
      EmbedParams{1280, 1.7f}, {5}, {EMBED_THREADS}));
  expect_bits(results[3], expected.data);
}

INSTANTIATE_TEST_SUITE_P(Types, GpuEmbed, testing::ValuesIn(tested_types()), name_of_type);

}  // namespace
}  // namespace hearth::backend::gpu
