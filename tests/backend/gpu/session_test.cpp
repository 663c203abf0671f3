/// What a session of the GPU backend does besides computing, and a model small enough for the
/// emulator under sanitizers; executor_test.cpp has the others.

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quant/types/q8_0.h"
#include "tests/backend/gpu/backend_under_test.h"
#include "tests/backend/step_runner.h"

namespace hearth::backend {
namespace {

using graph::Family;
using graph::TinyModel;
using graph::TinySize;

TinySize tiny() {
  return {.n_layers = 2,
          .embed = 32,
          .ffn = 32,
          .n_heads = 2,
          .n_kv_heads = 1,
          .head_dim = 16,
          .vocab = 12,
          .n_key_heads = 1,
          .n_value_heads = 2,
          .key_dim = 16,
          .value_dim = 16};
}

TEST(GpuBackend, GivesTheReferenceBits) {
  for (const auto family : {Family::llama, Family::gemma, Family::hybrid}) {
    const TinyModel model(family, tiny(), {DType::f32, quant::Q8_0::info.dtype});
    const std::vector<Tokens> sequences{random_tokens(7, model.size().vocab, 1),
                                        random_tokens(3, model.size().vocab, 2)};
    const auto expected = reference_logits(model, DType::f16, sequences);
    expect_varied(expected);
    const auto actual = run_schedule(*gpu_backend(1), model, DType::f16, sequences, {.chunk = 3});
    EXPECT_EQ(first_difference(expected, actual), "");
  }
}

TEST(GpuBackend, TakesMoreSequencesThanEverBefore) {
  const TinyModel model(Family::llama, tiny(), {DType::f32});
  std::vector<Tokens> sequences;
  for (std::uint32_t i = 0; i < 20; ++i) {
    sequences.push_back(random_tokens(2, model.size().vocab, i));
  }
  const auto expected = reference_logits(model, DType::f16, sequences);
  const auto actual = run_schedule(*gpu_backend(), model, DType::f16, sequences, {.chunk = 1});
  EXPECT_EQ(first_difference(expected, actual), "");
}

TEST(GpuBackend, CopiesStateSlots) {
  const TinyModel model(Family::hybrid, tiny(), {DType::f32});
  const auto backend = gpu_backend();
  const auto session =
      backend->open(model.weights(), {model.kv_cache(DType::f32, 1), model.states(2), {}}).value();
  const auto executable =
      session
          ->compile(plan::make_plan(model.record({1, 1}), model.weights(), backend->plan_options()))
          .value();
  const std::vector<std::int32_t> sequence{0};
  const std::vector<std::int32_t> table{0};
  const auto logits_at = [&](std::int32_t position, std::int32_t slot) {
    const std::vector<TokenId> token{TokenId{position + 1}};
    const std::vector<std::int32_t> positions{position};
    const std::vector<std::int32_t> slots{slot};
    const auto logits = executable
                            ->run({.tokens = token,
                                   .positions = positions,
                                   .sequences = sequence,
                                   .logit_rows = sequence,
                                   .block_tables = table,
                                   .table_stride = 1,
                                   .state_slots = slots})
                            .value();
    return std::vector<float>(logits.begin(), logits.end());
  };
  logits_at(0, 0);
  session->copy_state(0, 1);
  const auto expected = logits_at(1, 0);
  EXPECT_EQ(logits_at(1, 1), expected);
  EXPECT_NE(logits_at(1, 1), expected);  // the state has gone on
}

/// One token of a sequence that begins.
Result<void> run_first_token(Executable& executable) {
  const std::vector<TokenId> token{TokenId{1}};
  const std::vector<std::int32_t> zero{0};
  HEARTH_TRY(executable.run({.tokens = token,
                             .positions = zero,
                             .sequences = zero,
                             .logit_rows = zero,
                             .block_tables = zero,
                             .table_stride = 1}));
  return {};
}

TEST(GpuBackend, SaysWhatFailedOnTheDevice) {
  const TinyModel model(Family::llama, tiny(), {DType::f32});
  const auto backend =
      make_gpu_backend(gpu::emulator::open_emulator_device({.failing_submission = 0}));
  const auto session =
      backend->open(model.weights(), {model.kv_cache(DType::f32, 1), {}, {}}).value();
  const auto executable =
      session
          ->compile(plan::make_plan(model.record({1, 1}), model.weights(), backend->plan_options()))
          .value();
  const auto failed = run_first_token(*executable);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error(), (Error{ErrorCode::internal, "emulator: submission 0 fails as asked"}));
  EXPECT_TRUE(run_first_token(*executable));  // the device is not lost
}

TEST(GpuBackend, SaysThatALostDeviceCannotBeOpenedAnew) {
  const TinyModel model(Family::llama, tiny(), {DType::f32});
  const auto backend = make_gpu_backend(
      gpu::emulator::open_emulator_device({.failing_submission = 0, .loses_device = true}));
  const auto session =
      backend->open(model.weights(), {model.kv_cache(DType::f32, 1), {}, {}}).value();
  const auto executable =
      session
          ->compile(plan::make_plan(model.record({1, 1}), model.weights(), backend->plan_options()))
          .value();
  EXPECT_FALSE(run_first_token(*executable));
  for (int i = 0; i < 2; ++i) {
    const auto refused = run_first_token(*executable);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message,
              "the device was lost, and opening it anew failed: this device is opened once only; "
              "start the program again");
  }
  session->copy_state(0, 0);  // of nothing that is there
  EXPECT_EQ(session->memory().weight_bytes, 0);
  EXPECT_EQ(backend->free_memory(), 0);
}

TEST(GpuBackend, SaysWhatDoesNotFit) {
  const TinyModel model(Family::llama, tiny(), {DType::f32});
  const auto backend =
      make_gpu_backend(gpu::emulator::open_emulator_device({.memory_bytes = 1000}));
  const auto session = backend->open(model.weights(), {model.kv_cache(DType::f32, 1), {}, {}});
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code, ErrorCode::out_of_memory);
  EXPECT_THAT(session.error().message, testing::HasSubstr("'weights'"));
}

TEST(GpuBackend, SaysByTheWeightsWhetherAModelCanRun) {
  const auto backend =
      make_gpu_backend(gpu::emulator::open_emulator_device({.memory_bytes = 100'000}));
  const TinyModel fits(Family::llama, tiny(), {quant::Q8_0::info.dtype});
  EXPECT_TRUE(backend->check(fits.weights()));
  const TinyModel too_large(Family::llama, {}, {DType::f32});
  EXPECT_EQ(backend->check(too_large.weights()).error().code, ErrorCode::out_of_memory);
  const TinyModel unsupported(Family::llama, tiny(), {DType::f64});
  EXPECT_THAT(backend->check(unsupported.weights()).error().message,
              testing::HasSubstr("no GPU kernel for type F64"));
}

TEST(GpuBackend, MeasuresHowFastItsDeviceReads) {
  const auto backend =
      make_gpu_backend(gpu::emulator::open_emulator_device({.memory_bytes = 1 << 20}));
  const auto stream = backend->read_stream().value();
  EXPECT_GT(stream->measure().value(), 0);
}

}  // namespace
}  // namespace hearth::backend
