#include <numeric>
#include <tuple>

#include <gtest/gtest.h>

#include "backend/gpu/kernels/elementwise.h"
#include "backend/gpu/kernels/embed.h"
#include "backend/gpu/kernels/rms_norm.h"
#include "backend/gpu/kernels/rope.h"
#include "quant/registry.h"
#include "tests/backend/gpu/kernels/kernel_runner.h"
#include "tests/graph/op_runner.h"
#include "tests/graph/tiny_model.h"

namespace hearth::backend::gpu {
namespace {

using graph::Matrix;
using graph::random_matrix;

TEST(GpuRmsNorm, AgreesWithTheReference) {
  for (const std::int64_t n : shapes<std::int64_t>({4, 100, 1024})) {
    for (const std::uint32_t n_threads : shapes({32u, 256u})) {
      graph::RandomWeights weights(1);
      const auto weight = weights.add_uniform("norm", {n}, 0.5f, 1.5f);
      const Matrix x = random_matrix(3, n, 2);
      const auto expected =
          graph::run_op(graph::RmsNorm{weight, 1e-5f}, weights.table(), {x}).value();
      const auto results =
          run_everywhere(call(KernelId::rms_norm_f32,
                              {contents(x.data), weights.bytes(weight), poisoned(x.data.size())},
                              RmsNormParams{static_cast<u32>(n), 1e-5f}, {3}, {n_threads}));
      EXPECT_LT(relative_error(values<float>(results[2]), expected.data), f32_tolerance(n));
    }
  }
}

TEST(GpuAdd, GivesTheBitsOfTheReference) {
  const Matrix a = random_matrix(3, 100, 1);
  const Matrix b = random_matrix(3, 100, 2);
  const auto expected = graph::run_op(graph::Add{}, {}, {a, b}).value();
  const auto results =
      run_everywhere(call(KernelId::add_f32, {contents(a.data), contents(b.data), poisoned(300)},
                          ElementwiseParams{300}, {2}, {64}));
  EXPECT_EQ(values<float>(results[2]), expected.data);
}

// The exponential is made of the same operations as the processor's, so even gates agree in bits.
TEST(GpuGates, GiveTheBitsOfTheReference) {
  Matrix gate = random_matrix(2, 100, 1);
  for (float& value : gate.data) {
    value *= 30.0f;
  }
  gate.data[0] = 200.0f;
  gate.data[1] = -200.0f;
  const Matrix up = random_matrix(2, 100, 2);
  for (const auto& [kernel, kind] : {std::pair(KernelId::swiglu_f32, graph::ActivationKind::silu),
                                     {KernelId::geglu_f32, graph::ActivationKind::gelu_tanh}}) {
    const auto activated = graph::run_op(graph::Activation{kind}, {}, {gate}).value();
    const auto expected = graph::run_op(graph::Mul{}, {}, {activated, up}).value();
    const auto results =
        run_everywhere(call(kernel, {contents(gate.data), contents(up.data), poisoned(200)},
                            ElementwiseParams{200}, {1}, {64}));
    EXPECT_EQ(values<float>(results[2]), expected.data);
  }
}

TEST(GpuRope, GivesTheBitsOfTheReference) {
  for (const auto& [pairing, stride, gap] : {std::tuple(graph::RopePairing::adjacent, 2u, 1u),
                                             {graph::RopePairing::half_split, 1u, 8u}}) {
    const graph::RopeParams params{.pairing = pairing, .head_dim = 24, .n_rot = 16};
    const Matrix x = random_matrix(5, 3 * 24, 1);
    const graph::OwnedStep step(5, 90);
    const auto expected = graph::run_op(graph::Rope{params}, {}, {x}, step).value();

    const graph::RopeTable table(params, {});
    std::vector<float> angles;  // [95 positions, 8 pairs, 2]
    for (std::int32_t position = 0; position < 95; ++position) {
      std::array<float, 8> cosines;
      std::array<float, 8> sines;
      table.angles(position, cosines.data(), sines.data());
      for (std::size_t pair = 0; pair < 8; ++pair) {
        angles.insert(angles.end(), {cosines[pair], sines[pair]});
      }
    }
    const auto results = run_everywhere(
        call(KernelId::rope_f32, {contents(x.data), contents(step.positions), contents(angles)},
             RopeParams{3, 24, 16, stride, gap}, {5}, {32}));
    EXPECT_EQ(values<float>(results[0]), expected.data);
  }
}

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
