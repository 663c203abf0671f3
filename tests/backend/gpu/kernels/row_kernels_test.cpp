#include <gtest/gtest.h>

#include "backend/gpu/kernels/embed.h"
#include "quant/registry.h"
#include "tests/backend/gpu/kernels/kernel_runner.h"
#include "tests/graph/op_runner.h"
#include "tests/graph/tiny_model.h"

namespace hearth::backend::gpu {
namespace {

TEST(GpuEmbed, GivesTheReferenceRowsOfEveryType) {
  for (const auto& [kernel, type] : {std::pair(KernelId::embed_f16, "F16"),
                                     {KernelId::embed_q4_k, "Q4_K"},
                                     {KernelId::embed_q6_k, "Q6_K"},
                                     {KernelId::embed_q8_0, "Q8_0"}}) {
    graph::RandomWeights weights(1);
    const auto table = weights.add("embed", quant::find(type)->dtype, {7, 512});
    graph::OwnedStep step(3);
    step.tokens = {TokenId{6}, TokenId{0}, TokenId{3}};
    const auto expected =
        graph::run_op(graph::Embed{table, 2.0f}, weights.table(), {}, step).value();
    const auto results = run_everywhere(
        call(kernel, {contents(step.tokens), weights.bytes(table), poisoned(3 * 512)},
             EmbedParams{512, 2.0f}, {3}, {64}));
    EXPECT_LT(relative_error(values<float>(results[2]), expected.data), 1e-7) << type;
  }
}

}  // namespace
}  // namespace hearth::backend::gpu
