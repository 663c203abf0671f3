/// A device that is lost in the middle of the work. On a card that takes every context of the
/// program along, so this is no company for tests that keep one open.

#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "backend/gpu/cuda/cuda_device.h"
#include "tests/backend/gpu/backend_under_test.h"
#include "tests/graph/tiny_model.h"

namespace hearth::backend {
namespace {

// A token that no table has makes a card read where nothing is.
TEST(LostDevice, IsOpenedAnewForTheNextRun) {
  const graph::TinyModel model(graph::Family::llama, {.n_layers = 1}, {DType::f32});
  int n_opened = 0;
  const auto backend =
      make_gpu_backend([&n_opened]() -> Result<std::unique_ptr<gpu::Device>> {
        ++n_opened;
        return is_on_card()
                   ? gpu::cuda::open_cuda_device(0)
                   : gpu::emulator::open_emulator_device(
                         {.failing_submission = n_opened == 1 ? std::optional(1) : std::nullopt,
                          .loses_device = true});
      }).value();
  const auto session =
      backend->open(model.weights(), {model.kv_cache(DType::f32, 1), {}, {}}).value();
  const auto bystander =
      backend->open(model.weights(), {model.kv_cache(DType::f32, 1), {}, {}}).value();
  const auto plan = plan::make_plan(model.record({1, 1}), model.weights(), backend->plan_options());
  const auto executable = session->compile(plan).value();
  const auto other = bystander->compile(plan).value();
  const auto logits_of = [](Executable& each, std::int32_t token) {
    const std::vector<TokenId> tokens{TokenId{token}};
    const std::vector<std::int32_t> zero{0};
    const auto logits = each.run({.tokens = tokens,
                                  .positions = zero,
                                  .sequences = zero,
                                  .logit_rows = zero,
                                  .block_tables = zero,
                                  .table_stride = 1});
    return logits ? Result<std::vector<float>>(std::vector<float>(logits->begin(), logits->end()))
                  : Failure(logits.error());
  };
  const auto expected = logits_of(*executable, 3).value();
  const auto lost = logits_of(*executable, is_on_card() ? 0x70000000 : 3);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, ErrorCode::internal);
  if (is_on_card()) {
    // NVIDIA's driver may serve the program no more: CUDA Driver API, CUDA_ERROR_ILLEGAL_ADDRESS.
    const auto again = logits_of(*executable, 3);
    EXPECT_TRUE(again ? *again == expected
                      : again.error().message.ends_with("start the program again"))
        << again.error().message;
    return;
  }
  EXPECT_EQ(logits_of(*executable, 3), expected);
  EXPECT_EQ(logits_of(*other, 3), expected);
  EXPECT_EQ(n_opened, 2);
  EXPECT_EQ(session->memory().weight_bytes, bystander->memory().weight_bytes);
}

}  // namespace
}  // namespace hearth::backend
