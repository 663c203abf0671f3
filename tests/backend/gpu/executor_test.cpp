/// The promise of tests/backend/parity_test.cpp for the GPU backend: the bits of the reference
/// interpreter, in the emulator, or on a card with HEARTH_TEST_GPU=cuda in the environment.

#include <array>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/gpu/executor/recorder.h"
#include "backend/gpu/kernels/registry.h"
#include "base/format.h"
#include "quant/registry.h"
#include "tests/backend/gpu/backend_under_test.h"
#include "tests/backend/step_runner.h"
#include "tests/quant/random_blocks.h"

namespace hearth::backend {
namespace {

using graph::Family;
using graph::TinyModel;
using graph::TinySize;

/// Lengths of prompts: the emulator takes its time.
std::size_t length(std::size_t on_card, std::size_t emulated) {
  return is_on_card() ? on_card : emulated;
}

std::vector<DType> types(std::initializer_list<const char*> names) {
  std::vector<DType> types;
  for (const auto* name : names) {
    types.push_back(quant::find(name)->dtype);
  }
  return types;
}

/// Whole blocks of every type, and few tokens.
TinySize small() {
  return {.vocab = 24};
}

class EveryFamilyOnGpu : public testing::TestWithParam<Family> {
 protected:
  TinyModel model_{GetParam(), small(), types({"Q4_1", "Q6_K", "Q4_K", "F16", "Q8_0"})};
};

TEST_P(EveryFamilyOnGpu, GivesTheReferenceBitsForEveryChunkAndCompany) {
  const auto vocab = model_.size().vocab;
  const std::vector<Tokens> sequences{random_tokens(length(67, 19), vocab, 1),
                                      random_tokens(5, vocab, 2),
                                      random_tokens(length(21, 7), vocab, 3)};
  const auto expected = reference_logits(model_, DType::f16, sequences);
  expect_varied(expected);
  for (const std::size_t chunk : {1u, 7u, 67u}) {
    const auto backend = gpu_backend(chunk);
    const auto together = run_schedule(*backend, model_, DType::f16, sequences, {.chunk = chunk});
    EXPECT_EQ(first_difference(expected, together), "") << "chunks of " << chunk;
  }
  const auto alone =
      run_schedule(*gpu_backend(), model_, DType::f16, {sequences.front()}, {.chunk = 3});
  EXPECT_EQ(first_difference(expected, alone), "");
}

// As Metal: products of tiles of bytes are no instructions there.
TEST_P(EveryFamilyOnGpu, GivesTheReferenceBitsWithoutIntegerTiles) {
  if (is_on_card()) {
    GTEST_SKIP() << "cards have them";
  }
  const TinyModel model(GetParam(), small(), types({"Q4_K", "Q6_K", "Q5_K", "F32"}));
  const std::vector<Tokens> sequences{random_tokens(19, model.size().vocab, 1)};
  const auto expected = reference_logits(model, DType::f16, sequences);
  for (const std::size_t chunk : {1u, 18u}) {
    const auto backend =
        make_gpu_backend(gpu::emulator::open_emulator_device({.has_integer_tiles = false}));
    const auto actual = run_schedule(*backend, model, DType::f16, sequences, {.chunk = chunk});
    EXPECT_EQ(first_difference(expected, actual), "") << "chunks of " << chunk;
  }
}

TEST_P(EveryFamilyOnGpu, GivesTheReferenceBitsForAnyChoiceOfLogitRowsAndALargerBucket) {
  const std::vector<Tokens> sequences{random_tokens(12, model_.size().vocab, 6),
                                      random_tokens(7, model_.size().vocab, 7)};
  const auto expected = reference_logits(model_, DType::f16, sequences);
  const auto actual = run_schedule(*gpu_backend(), model_, DType::f16, sequences,
                                   {.chunk = 3, .logits_every = 8, .spare_bucket_rows = 9});
  EXPECT_EQ(first_difference(expected, actual), "");
  EXPECT_TRUE(actual[0][1].empty());   // nobody asked
  EXPECT_FALSE(actual[0][8].empty());  // every eighth row
}

TEST_P(EveryFamilyOnGpu, GivesTheReferenceBitsForEveryCacheType) {
  const std::vector<Tokens> sequences{random_tokens(length(40, 18), model_.size().vocab, 4)};
  for (const auto type : types({"F32", "BF16", "Q8_0", "Q4_0"})) {
    const auto expected = reference_logits(model_, type, sequences);
    const auto actual = run_schedule(*gpu_backend(), model_, type, sequences, {.chunk = 7});
    EXPECT_EQ(first_difference(expected, actual), "") << "cache of " << quant::name(type);
  }
}

std::string family_name(const testing::TestParamInfo<Family>& info) {
  static constexpr std::array names{"Llama", "Gemma", "Hybrid"};
  return names[static_cast<std::size_t>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Parity, EveryFamilyOnGpu,
                         testing::Values(Family::llama, Family::gemma, Family::hybrid),
                         family_name);

class EveryTypeOnGpu : public testing::TestWithParam<DType> {};

// Matrices, experts and embeddings of every type; those without a kernel are refused by name.
TEST_P(EveryTypeOnGpu, GivesTheReferenceBitsOrIsRefusedByName) {
  const TinyModel model(Family::hybrid, {.n_layers = 1, .vocab = 24}, {GetParam()});
  const auto backend = gpu_backend();
  const auto kernel = gpu::kernel_for("product_", GetParam(), "tensor");
  if (!kernel) {
    const auto session =
        backend->open(model.weights(), {model.kv_cache(DType::f16, 1), model.states(1), {}})
            .value();
    const auto refused = session->compile(
        plan::make_plan(model.record({1, 1}), model.weights(), backend->plan_options()));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
    EXPECT_THAT(refused.error().message,
                testing::HasSubstr(format("no GPU kernel for type {}", quant::name(GetParam()))));
    return;
  }
  const std::vector<Tokens> sequences{random_tokens(5, model.size().vocab, 1)};
  const auto expected = reference_logits(model, DType::f16, sequences);
  const auto actual = run_schedule(*backend, model, DType::f16, sequences, {.chunk = 5});
  EXPECT_EQ(first_difference(expected, actual), "");
}

INSTANTIATE_TEST_SUITE_P(Parity, EveryTypeOnGpu, testing::ValuesIn(quant::decodable_types()),
                         [](const auto& each) { return std::string(quant::name(each.param)); });

// Experts of more rows than a tile has, and of a few.
TEST(GpuBackend, GivesTheReferenceBitsForPromptsOfManyRows) {
  const TinyModel model(Family::hybrid, {.n_layers = 2, .vocab = 24},
                        types({"Q4_K", "Q6_K", "Q5_K"}));
  const std::vector<Tokens> sequences{random_tokens(71, model.size().vocab, 1),
                                      random_tokens(20, model.size().vocab, 2)};
  const auto expected = reference_logits(model, DType::f16, sequences);
  for (const std::size_t chunk : {91u, 18u}) {
    const auto actual = run_schedule(*gpu_backend(), model, DType::f16, sequences,
                                     {.chunk = chunk, .logits_every = 30});
    EXPECT_EQ(first_difference(expected, actual), "") << "chunks of " << chunk;
  }
}

void expect_reference_bits(const TinyModel& model, std::initializer_list<std::size_t> chunks) {
  const std::vector<Tokens> sequences{random_tokens(21, model.size().vocab, 1)};
  const auto expected = reference_logits(model, DType::f16, sequences);
  for (const std::size_t chunk : chunks) {
    const auto actual = run_schedule(*gpu_backend(), model, DType::f16, sequences,
                                     {.chunk = chunk, .logits_every = 3});
    EXPECT_EQ(first_difference(expected, actual), "") << "chunks of " << chunk;
  }
}

// One row, several, and as many as prompts have.
TEST(GpuBackend, GivesTheReferenceBitsForTilesOfBlocksOf32Weights) {
  const TinyModel model(Family::hybrid, {.n_layers = 2, .vocab = 24},
                        types({"Q8_0", "Q4_0", "Q8_0"}));
  expect_reference_bits(model, {21, 5, 1});
}

// They share projections with blocks of 256 weights.
TEST(GpuBackend, GivesTheReferenceBitsForTilesOfEveryKind) {
  const TinyModel model(Family::hybrid, {.n_layers = 2, .vocab = 24},
                        types({"Q8_0", "Q4_K", "MXFP4"}));
  expect_reference_bits(model, {5, 1});
}

TEST(GpuBackend, GivesTheReferenceBitsForMoreStripsOfAnExpertThanThreadsAddUp) {
  TinySize size = small();
  size.ffn = 768;  // 48 strips of gate and of up for at most a few threadgroups
  const TinyModel model(Family::hybrid, size, types({"Q4_K"}));
  const std::vector<Tokens> sequences{random_tokens(3, size.vocab, 1)};
  const auto expected = reference_logits(model, DType::f16, sequences);
  const auto actual = run_schedule(*gpu_backend(), model, DType::f16, sequences, {.chunk = 1});
  EXPECT_EQ(first_difference(expected, actual), "");
}

TEST(GpuBackend, SelectsNoRowWhereThereIsOne) {
  const TinyModel model(Family::llama, small(), types({"Q4_K"}));
  const auto backend = gpu_backend();
  const auto session =
      backend->open(model.weights(), {model.kv_cache(DType::f16, 4), model.states(1), {}}).value();
  const auto kernels = [&](std::int64_t rows) {
    const auto plan =
        plan::make_plan(model.record({rows, rows}), model.weights(), backend->plan_options());
    return session->compile(plan).value()->kernels();
  };
  EXPECT_THAT(kernels(1), testing::Not(testing::Contains("gather_rows_f32")));
  EXPECT_THAT(kernels(2), testing::Contains("gather_rows_f32"));
}

/// Steps of four rows and of one.
void expect_reference_bits_of_few(const TinySize& size, std::initializer_list<const char*> names) {
  const TinyModel model(Family::llama, size, types(names));
  const std::vector<Tokens> sequences{random_tokens(5, size.vocab, 1)};
  const auto expected = reference_logits(model, DType::f16, sequences);
  const auto actual = run_schedule(*gpu_backend(), model, DType::f16, sequences, {.chunk = 4});
  EXPECT_EQ(first_difference(expected, actual), "");
}

// One row is too long for strips, and four are too many.
TEST(GpuBackend, GivesTheReferenceBitsForFewRowsThatAreTooLongForStrips) {
  TinySize size = small();
  size.n_layers = 1;
  size.ffn = 14592;
  expect_reference_bits_of_few(size, {"Q4_K"});
}

// Four rows fit with one matrix but not with a pair, or not with any, some of floats; or not even
// one does with a pair.
TEST(GpuBackend, GivesTheReferenceBitsForFewRowsThatAreTooManyForStrips) {
  TinySize size = small();
  size.n_layers = 1;
  size.embed = 2560;
  expect_reference_bits_of_few(size, {"Q4_K"});
  size.embed = 4352;
  expect_reference_bits_of_few(size, {"Q6_K", "F32"});
  size.embed = 7424;
  expect_reference_bits_of_few(size, {"Q4_K"});
}

TEST(GpuBackend, GivesTheReferenceBitsBeyondOneAttentionPartition) {
  const TinySize size{.n_layers = 2,
                      .embed = 24,  // no multiple of any block or vector
                      .ffn = 40,
                      .n_heads = 2,
                      .n_kv_heads = 1,
                      .head_dim = 16,
                      .vocab = 19,
                      .window = 520};
  const TinyModel model(Family::gemma, size, {DType::f32});
  const std::vector<Tokens> sequences{random_tokens(length(1100, 530), size.vocab, 8)};
  const auto expected = reference_logits(model, DType::f32, sequences);
  // Many rows take all keys at once, few rows share them out.
  for (const std::size_t chunk : {300u, 9u}) {
    const auto actual = run_schedule(*gpu_backend(), model, DType::f32, sequences,
                                     {.chunk = chunk, .logits_every = 100});
    EXPECT_EQ(first_difference(expected, actual), "") << "chunks of " << chunk;
  }
}

}  // namespace
}  // namespace hearth::backend
