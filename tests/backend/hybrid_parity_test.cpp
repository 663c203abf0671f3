/// The promise of parity_test.cpp for recurrent layers and experts.

#include <string>

#include <gtest/gtest.h>

#include "quant/registry.h"
#include "tests/backend/step_runner.h"
#include "tests/quant/random_blocks.h"

namespace hearth::backend {
namespace {

using graph::Family;
using graph::TinyModel;
using graph::TinySize;

/// One recurrent layer with experts, all of whose matrices have the type.
class EveryExpertType : public testing::TestWithParam<DType> {};

TEST_P(EveryExpertType, GivesTheReferenceBitsOnEveryKernelSet) {
  const TinyModel model(Family::hybrid, {.n_layers = 1}, {GetParam()});
  const std::vector<Tokens> sequences{random_tokens(6, model.size().vocab, 1)};
  const auto expected = reference_logits(model, DType::f16, sequences);
  expect_varied(expected);
  for (const auto kernels : kernel_sets_for_every_type()) {
    for (const auto layout : {WeightLayout::tiles, WeightLayout::mapped}) {
      const auto cpu = cpu_backend(kernels, n_test_threads, layout);
      const std::size_t chunk = layout == WeightLayout::tiles ? 6 : 2;
      const auto actual = run_schedule(*cpu, model, DType::f16, sequences, {.chunk = chunk});
      EXPECT_EQ(first_difference(expected, actual), "") << kernels << ", chunks of " << chunk;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Parity, EveryExpertType, testing::ValuesIn(quant::decodable_types()),
                         [](const auto& each) { return std::string(quant::name(each.param)); });

TEST(CpuBackend, GivesTheReferenceBitsForEveryShapeOfRecurrentLayerAndExpert) {
  for (const auto order : {graph::HeadOrder::grouped, graph::HeadOrder::tiled}) {
    for (const std::int64_t dim : {16, 48}) {
      const TinySize size{.n_layers = 2,
                          .embed = 40,                 // no multiple of any block or vector
                          .ffn = dim == 16 ? 24 : 48,  // part of a panel, or whole ones
                          .n_heads = 2,
                          .n_kv_heads = 1,
                          .head_dim = 16,
                          .vocab = 19,
                          .n_key_heads = 3,
                          .n_value_heads = 9,
                          .key_dim = dim + 4,
                          .value_dim = dim,
                          .order = order,
                          .n_experts = 7,
                          .n_used = 7};
      const TinyModel model(Family::hybrid, size, {DType::f32});
      const std::vector<Tokens> sequences{random_tokens(40, size.vocab, 11)};
      const auto expected = reference_logits(model, DType::f16, sequences);
      for (const auto kernels : kernel_set_names()) {
        for (const int n_threads : {1, 3}) {
          const auto cpu = cpu_backend(kernels, n_threads);
          const auto actual = run_schedule(*cpu, model, DType::f16, sequences, {.chunk = 17});
          EXPECT_EQ(first_difference(expected, actual), "")
              << kernels << ", " << n_threads << " threads, heads of " << dim;
        }
      }
    }
  }
}

}  // namespace
}  // namespace hearth::backend
