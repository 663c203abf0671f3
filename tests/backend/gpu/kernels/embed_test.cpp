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
  // The first two as they are, and as what the step before has chosen.
  using Ids = std::vector<std::int32_t>;
  for (const Ids& tokens : {Ids{6, 0, 3}, Ids{-2, -3, 3}}) {
    const auto results =
        run_everywhere(call(GetParam().embed,
                            {counts(3), contents(tokens), contents(std::vector<u32>{100, 6, 0}),
                             weights.bytes(table), poisoned(std::size_t{5} * 1280)},
                            EmbedParams{1280, 1.7f}, {5}, {EMBED_THREADS}));
    expect_bits(results[4], expected.data);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, GpuEmbed, testing::ValuesIn(tested_types()), name_of_type);

}  // namespace
}  // namespace hearth::backend::gpu
