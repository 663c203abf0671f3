/// What backends say and refuse.

#include "backend/backend.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/kernels/kernel_set.h"
#include "backend/cpu/layout_choice.h"
#include "backend/reference/reference_backend.h"
#include "quant/registry.h"
#include "tests/graph/tiny_model.h"

namespace hearth::backend {
namespace {

using graph::Family;
using graph::TinyModel;

/// Two matrices and the experts of one layer, 1,024 bytes each.
graph::WeightTable weights_with_experts(bool is_mapped = true) {
  static const std::vector<std::byte> data(1024);
  graph::WeightTable weights;
  for (const Shape& shape : {Shape{4, 4, 16}, Shape{16, 16}, Shape{16, 16}}) {
    weights.push_back({.name = "w", .tensor = {DType::f32, shape, data}, .is_mapped = is_mapped});
  }
  return weights;
}

TEST(LayoutChoice, AModelThatFitsBecomesTiles) {
  const auto choice = cpu::choose_layout(WeightLayout::automatic, weights_with_experts(), 4096);
  EXPECT_EQ(choice.is_tiled, (std::vector<bool>{true, true, true}));
}

TEST(LayoutChoice, OfALargerOneWhatEveryTokenReadsBecomesTilesFirst) {
  const auto choice = cpu::choose_layout(WeightLayout::automatic, weights_with_experts(), 3072);
  EXPECT_EQ(choice.is_tiled, (std::vector<bool>{false, true, true}));
  const auto less = cpu::choose_layout(WeightLayout::automatic, weights_with_experts(), 2000);
  EXPECT_EQ(less.is_tiled, (std::vector<bool>{false, true, false}));
  EXPECT_THAT(less.reason, testing::HasSubstr("the rest read in place from the file"));
}

TEST(LayoutChoice, WeightsThatAreNoFilesLeaveLessForTiles) {
  const auto copied = weights_with_experts(false);
  const auto choice = cpu::choose_layout(WeightLayout::automatic, copied, 3072 + 4096);
  EXPECT_EQ(choice.is_tiled, (std::vector<bool>{true, true, true}));
  const auto less = cpu::choose_layout(WeightLayout::automatic, copied, 3072 + 2000);
  EXPECT_EQ(less.is_tiled, (std::vector<bool>{false, true, false}));
  const auto none = cpu::choose_layout(WeightLayout::automatic, copied, 2000);
  EXPECT_EQ(none.is_tiled, (std::vector<bool>{false, false, false}));
}

TEST(CpuBackend, RefusesANegativeNumberOfThreads) {
  const auto backend = make_cpu_backend({.n_threads = -1});
  ASSERT_FALSE(backend.has_value());
  EXPECT_EQ(backend.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(backend.error().message, testing::HasSubstr("-1 threads"));
}

TEST(CpuBackend, RefusesAnUnknownKernelSetAndNamesTheKnownOnes) {
  setenv("HEARTH_CPU_KERNELS", "mmx", 1);
  const auto backend = make_cpu_backend({});
  unsetenv("HEARTH_CPU_KERNELS");
  ASSERT_FALSE(backend.has_value());
  EXPECT_THAT(backend.error().message,
              testing::AllOf(testing::HasSubstr("'mmx'"), testing::HasSubstr("portable")));
}

TEST(CpuBackend, SaysHowManyThreadsAndWhichKernelsItUses) {
  const auto backend = make_cpu_backend({.n_threads = 3}).value();
  EXPECT_EQ(backend->name(), "cpu");
  EXPECT_THAT(backend->description(),
              testing::AllOf(testing::HasSubstr("3 threads"),
                             testing::HasSubstr(cpu::supported_kernel_sets().front().name)));
}

TEST(ReferenceBackend, RefusesAFusedPlan) {
  const TinyModel model(Family::llama, {.n_layers = 1}, {DType::f16});
  const auto session = make_reference_backend()
                           ->open(model.weights(), {model.kv_cache(DType::f16, 2), {}, {}})
                           .value();
  const auto plan = plan::make_plan(model.record({4, 1}), model.weights(), {.fuse = true});
  const auto executable = session->compile(plan);
  ASSERT_FALSE(executable.has_value());
  EXPECT_EQ(executable.error().code, ErrorCode::unsupported);
}

/// Bytes that a session copies of the weights of one plan.
std::int64_t copied_bytes(const TinyModel& model, WeightLayout layout) {
  const auto backend = make_cpu_backend({.n_threads = 2, .layout = layout}).value();
  const auto session =
      backend->open(model.weights(), {model.kv_cache(DType::f16, 2), {}, {}}).value();
  const auto plan = plan::make_plan(model.record({4, 1}), model.weights(), backend->plan_options());
  EXPECT_TRUE(session->compile(plan).has_value());
  EXPECT_TRUE(session->compile(plan).has_value());  // finds the tiles made
  EXPECT_THAT(session->description(),
              testing::HasSubstr(layout == WeightLayout::mapped ? "in place" : "tiles"));
  return session->memory().weight_bytes;
}

TEST(CpuBackend, CopiesMatricesOnceIntoTilesOfTheSameSizeUnlessTheyStayMapped) {
  const TinyModel model(Family::llama, {.n_layers = 1, .vocab = 32}, {quant::find("Q4_1")->dtype});
  std::int64_t matrix_bytes = 0;
  for (const auto& weight : model.weights()) {
    if (weight.tensor.shape.rank() == 2) {
      matrix_bytes += static_cast<std::int64_t>(weight.tensor.data.size());
    }
  }
  const auto& embed = model.weights()[index(model.token_embed())].tensor;
  EXPECT_EQ(copied_bytes(model, WeightLayout::mapped), 0);
  EXPECT_EQ(copied_bytes(model, WeightLayout::automatic),
            matrix_bytes - static_cast<std::int64_t>(embed.data.size()));
}

TEST(Session, CountsTheCacheAndAWorkspaceThatSmallerBucketsShare) {
  const TinyModel model(Family::llama, {}, {DType::f16});
  const auto backend = make_cpu_backend({.n_threads = 2, .layout = WeightLayout::mapped}).value();
  const auto kv = model.kv_cache(DType::f16, 10);
  const auto session = backend->open(model.weights(), {kv, {}, {}}).value();
  EXPECT_EQ(session->memory().weight_bytes, 0);
  EXPECT_EQ(session->memory().kv_bytes, kv.bytes());
  EXPECT_EQ(session->memory().workspace_bytes, 0);
  const auto compile = [&](std::int64_t rows) {
    return session
        ->compile(
            plan::make_plan(model.record({rows, 1}), model.weights(), backend->plan_options()))
        .value();
  };
  const auto large = compile(64);
  const std::int64_t workspace = session->memory().workspace_bytes;
  EXPECT_GT(workspace, 0);
  const auto small = compile(8);
  EXPECT_EQ(session->memory().workspace_bytes, workspace);
}

}  // namespace
}  // namespace hearth::backend
