/// The promise that the design rests on: the CPU backend returns the bits of the reference
/// interpreter, whatever the kernel set, thread count, chunking and company in the batch.

#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "backend/cpu/kernels/kernel_set.h"
#include "backend/reference/reference_backend.h"
#include "quant/registry.h"
#include "tests/backend/step_runner.h"
#include "tests/quant/random_blocks.h"

namespace hearth::backend {
namespace {

using graph::Family;
using graph::TinyModel;
using graph::TinySize;

/// The types of a mixed-precision file: both activation blocks, with and without offsets, floats.
std::vector<DType> mixed_types() {
  std::vector<DType> types;
  for (const auto* name : {"Q4_1", "Q6_K", "Q4_K", "F16", "Q8_0"}) {
    types.push_back(quant::find(name)->dtype);
  }
  return types;
}

class EveryType : public testing::TestWithParam<DType> {};

TEST_P(EveryType, GivesTheReferenceBitsOnEveryKernelSet) {
  const TinyModel model(Family::llama, {.n_layers = 1}, {GetParam()});
  const std::vector<Tokens> sequences{random_tokens(6, model.size().vocab, 1)};
  const auto expected = reference_logits(model, DType::f16, sequences);
  expect_varied(expected);
  for (const auto kernels : kernel_sets_for_every_type()) {
    for (const auto layout : {WeightLayout::tiles, WeightLayout::mapped}) {
      const auto cpu = cpu_backend(kernels, n_test_threads, layout);
      const std::size_t some = layout == WeightLayout::tiles ? 6 : 1;
      for (const std::size_t chunk : all_or_some<std::size_t>({1, 6}, {some})) {
        const auto actual = run_schedule(*cpu, model, DType::f16, sequences, {.chunk = chunk});
        EXPECT_EQ(first_difference(expected, actual), "") << kernels << ", chunks of " << chunk;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Parity, EveryType, testing::ValuesIn(quant::decodable_types()),
                         [](const auto& each) { return std::string(quant::name(each.param)); });

class EveryFamily : public testing::TestWithParam<Family> {};

TEST_P(EveryFamily, GivesTheSameBitsForEveryThreadCountChunkAndCompany) {
  const TinyModel model(GetParam(), {}, mixed_types());
  const std::vector<Tokens> sequences{random_tokens(67, model.size().vocab, 1),
                                      random_tokens(5, model.size().vocab, 2),
                                      random_tokens(21, model.size().vocab, 3)};
  const auto expected = reference_logits(model, DType::f16, sequences);
  expect_varied(expected);
  for (const int n_threads : all_or_some<int>({1, 2, 4}, {3})) {
    const auto cpu = cpu_backend(kernel_set_names().front(), n_threads);
    for (const std::size_t chunk : all_or_some<std::size_t>({1, 7, 64, 67}, {7, 67})) {
      const auto alone =
          run_schedule(*cpu, model, DType::f16, {sequences.front()}, {.chunk = chunk});
      EXPECT_EQ(first_difference(expected, alone), "")
          << "alone, " << n_threads << " threads, chunks of " << chunk;
      const auto together = run_schedule(*cpu, model, DType::f16, sequences, {.chunk = chunk});
      EXPECT_EQ(first_difference(expected, together), "")
          << "with two others, " << n_threads << " threads, chunks of " << chunk;
    }
  }
}

TEST_P(EveryFamily, GivesTheSameBitsForEveryKernelSetAndCacheType) {
  const TinyModel model(GetParam(), {}, mixed_types());
  const std::vector<Tokens> sequences{random_tokens(21, model.size().vocab, 4),
                                      random_tokens(9, model.size().vocab, 5)};
  const auto q8_0 = quant::find("Q8_0")->dtype;
  const auto q4_0 = quant::find("Q4_0")->dtype;
  for (const auto kv_dtype :
       all_or_some<DType>({DType::f32, DType::f16, DType::bf16, q8_0, q4_0}, {DType::bf16, q4_0})) {
    const auto expected = reference_logits(model, kv_dtype, sequences);
    for (const auto kernels : kernel_set_names()) {
      const auto cpu = cpu_backend(kernels, n_test_threads);
      const auto actual = run_schedule(*cpu, model, kv_dtype, sequences, {.chunk = 7});
      EXPECT_EQ(first_difference(expected, actual), "")
          << kernels << ", cache of " << quant::name(kv_dtype);
    }
  }
}

TEST_P(EveryFamily, GivesTheSameBitsForAnyChoiceOfLogitRowsAndALargerBucket) {
  const TinyModel model(GetParam(), {}, mixed_types());
  const std::vector<Tokens> sequences{random_tokens(23, model.size().vocab, 6),
                                      random_tokens(11, model.size().vocab, 7)};
  const auto expected = reference_logits(model, DType::f16, sequences);
  const auto cpu = cpu_backend(kernel_set_names().front(), n_test_threads);
  for (const std::int64_t spare : {0, 9}) {
    const auto actual = run_schedule(*cpu, model, DType::f16, sequences,
                                     {.chunk = 3, .logits_every = 8, .spare_bucket_rows = spare});
    EXPECT_EQ(first_difference(expected, actual), "") << spare << " spare rows";
    EXPECT_TRUE(actual[0][1].empty());   // nobody asked
    EXPECT_TRUE(actual[0][4].empty());   // no row of this step did
    EXPECT_FALSE(actual[0][8].empty());  // every eighth row
    EXPECT_FALSE(actual[0][22].empty());
  }
}

std::string family_name(const testing::TestParamInfo<Family>& info) {
  switch (info.param) {
    case Family::llama:
      return "Llama";
    case Family::gemma:
      return "Gemma";
    case Family::hybrid:
      return "Hybrid";
  }
  return "";
}

INSTANTIATE_TEST_SUITE_P(Parity, EveryFamily,
                         testing::Values(Family::llama, Family::gemma, Family::hybrid),
                         family_name);

TEST(CpuBackend, GivesTheReferenceBitsBeyondOneAttentionPartition) {
  const TinySize size{.n_layers = 2,
                      .embed = 24,  // no multiple of any block or vector
                      .ffn = 40,
                      .n_heads = 2,
                      .n_kv_heads = 1,
                      .head_dim = 12,
                      .vocab = 19,
                      .window = 600};
  const TinyModel model(Family::gemma, size, {DType::f32});
  const std::vector<Tokens> sequences{random_tokens(1100, size.vocab, 8)};
  const auto expected = reference_logits(model, DType::f32, sequences);
  for (const auto kernels : kernel_set_names()) {
    const auto cpu = cpu_backend(kernels, n_test_threads);
    const auto actual = run_schedule(*cpu, model, DType::f32, sequences, {.chunk = 300});
    EXPECT_EQ(first_difference(expected, actual), "") << kernels;
  }
  // Few rows share out partitions.
  const auto cpu = cpu_backend(kernel_set_names().front(), n_test_threads);
  const auto actual = run_schedule(*cpu, model, DType::f32, sequences, {.chunk = 7});
  EXPECT_EQ(first_difference(expected, actual), "");
}

TEST(CpuBackend, GivesTheReferenceBitsForEveryShapeOfAttention) {
  struct Heads {
    std::int64_t n;
    std::int64_t n_kv;
    std::int64_t head_dim;
  };
  for (const auto& heads : {Heads{9, 3, 64}, Heads{5, 1, 80}, Heads{7, 1, 16}, Heads{3, 3, 40},
                            Heads{40, 1, 8}, Heads{4, 2, 256}}) {
    const TinySize size{.n_layers = 1,
                        .embed = 32,
                        .ffn = 32,
                        .n_heads = heads.n,
                        .n_kv_heads = heads.n_kv,
                        .head_dim = heads.head_dim,
                        .vocab = 19};
    const TinyModel model(Family::llama, size, {DType::f32});
    const std::vector<Tokens> sequences{random_tokens(50, size.vocab, 10)};
    const auto expected = reference_logits(model, DType::f16, sequences);
    for (const auto kernels : kernel_set_names()) {
      const auto cpu = cpu_backend(kernels, n_test_threads);
      for (const std::size_t chunk : {1u, 50u}) {
        const auto actual = run_schedule(*cpu, model, DType::f16, sequences, {.chunk = chunk});
        EXPECT_EQ(first_difference(expected, actual), "")
            << kernels << ", chunks of " << chunk << ", " << heads.n << " heads on " << heads.n_kv
            << " of length " << heads.head_dim;
      }
    }
  }
}

TEST(CpuBackend, LetsANanInAWeightReachTheLogits) {
  for (const auto dtype : quant::decodable_types()) {
    TinyModel model(Family::llama, {.n_layers = 1}, {DType::f32, dtype});
    // All bits set: NaN in every float field of every format.
    auto& bytes = model.storage().bytes(model.down_of_last_layer());
    const auto& type = quant::info(model.weights()[index(model.down_of_last_layer())].tensor.dtype);
    std::fill_n(bytes.begin(), type.block_bytes, std::byte{0xff});
    std::vector<float> decoded(static_cast<std::size_t>(type.block_weights));
    quant::decode(type.dtype, Bytes(bytes).first(static_cast<std::size_t>(type.block_bytes)),
                  decoded);
    if (!std::isnan(decoded.front())) {
      continue;  // MXFP4 and NVFP4 have no NaN
    }
    const std::vector<Tokens> sequences{random_tokens(3, model.size().vocab, 9)};
    for (const auto kernels : kernel_sets_for_every_type()) {
      const auto cpu = cpu_backend(kernels, n_test_threads);
      const auto logits = run_schedule(*cpu, model, DType::f16, sequences, {.chunk = 3});
      for (const float logit : logits.front().back()) {
        ASSERT_TRUE(std::isnan(logit)) << kernels << ", " << type.name << ": " << logit;
      }
    }
  }
}

TEST(CpuBackend, LetsANanInAnActivationReachTheLogitsOfItsRowOnly) {
  for (const auto dtype : quant::decodable_types()) {
    TinyModel model(Family::llama, {.n_layers = 1}, {DType::f32, dtype});
    constexpr std::int64_t damaged = 7;
    store(model.storage().bytes(model.token_embed()).data(), std::nanf(""),
          static_cast<std::size_t>(damaged * model.size().embed) * sizeof(float));
    const std::vector<Tokens> sequences{{TokenId{1}, TokenId{2}, TokenId{damaged}}};
    for (const auto kernels : kernel_sets_for_every_type()) {
      const auto cpu = cpu_backend(kernels, n_test_threads);
      const auto logits = run_schedule(*cpu, model, DType::f16, sequences, {.chunk = 3});
      for (std::size_t token = 0; token < logits[0][2].size(); ++token) {
        ASSERT_TRUE(std::isnan(logits[0][2][token])) << kernels << ", " << quant::name(dtype);
        ASSERT_FALSE(std::isnan(logits[0][1][token])) << kernels << ", " << quant::name(dtype);
      }
    }
  }
}

}  // namespace
}  // namespace hearth::backend
