#include "backend/gpu/kernels/embed.h"

#include <gtest/gtest.h>

#include "tests/backend/gpu/kernels/weight_types.h"
#include "tests/graph/tiny_model.h"

namespace hearth::backend::gpu {
namespace {

class GpuEmbed : public testing::TestWithParam<WeightType> {};

/// With the table as the file has it, or in tiles.
void expect_rows(const WeightType& type, bool is_tiled) {
  graph::RandomWeights weights(1);
  const auto table = weights.add("embed", type.dtype(), {7, 1280});
  graph::OwnedStep step(3);
  step.tokens = {TokenId{6}, TokenId{0}, TokenId{3}};
  const auto expected = graph::run_op(graph::Embed{table, 1.7f}, weights.table(), {}, step).value();
  // The first two as they are, and as what the step before has chosen.
  const Contents rows =
      is_tiled ? tiled(weights.table()[graph::index(table)].tensor) : weights.bytes(table);
  using Ids = std::vector<std::int32_t>;
  for (const Ids& tokens : {Ids{6, 0, 3}, Ids{-2, -3, 3}}) {
    const auto results =
        run_everywhere(call(type.embed,
                            {counts(3), contents(tokens), contents(std::vector<u32>{100, 6, 0}),
                             rows, poisoned(std::size_t{5} * 1280)},
                            EmbedParams{1280, 1.7f, is_tiled ? 1u : 0u}, {5}, {EMBED_THREADS}));
    expect_bits(results[4], expected.data);
  }
}

TEST_P(GpuEmbed, GivesTheBitsOfTheReference) {
  expect_rows(GetParam(), /*is_tiled=*/false);
}

INSTANTIATE_TEST_SUITE_P(Types, GpuEmbed, testing::ValuesIn(tested_types()), name_of_type);

class GpuTiledEmbed : public testing::TestWithParam<WeightType> {};

TEST_P(GpuTiledEmbed, GivesTheBitsOfTheReference) {
  expect_rows(GetParam(), /*is_tiled=*/true);
}

INSTANTIATE_TEST_SUITE_P(Types, GpuTiledEmbed, testing::ValuesIn(tiled_types()), name_of_type);

}  // namespace
}  // namespace hearth::backend::gpu
