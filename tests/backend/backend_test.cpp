/// What backends say and refuse.

#include "backend/backend.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/kernels/kernel_set.h"
#include "backend/cpu/layout_choice.h"
#include "backend/reference/reference_backend.h"
#include "base/fail.h"
#include "graph/loaded_weights.h"
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
    weights.push_back(
        {.name = "w", .tensor = {DType::f32, shape, data}, .origin = {.is_mapped = is_mapped}});
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

TEST(LayoutChoice, WeightsThatHaveToBeMadeBecomeTilesAndLeaveLessForOthers) {
  auto weights = weights_with_experts();
  weights.front().tensor.data = {};
  weights.front().origin = {.make = [] { return Result<Buffer>(Buffer(1024)); }};
  const auto whole = cpu::choose_layout(WeightLayout::automatic, weights, 4096);
  EXPECT_EQ(whole.is_tiled, (std::vector<bool>{true, true, true}));
  const auto part = cpu::choose_layout(WeightLayout::automatic, weights, 3072);
  EXPECT_EQ(part.is_tiled, (std::vector<bool>{true, true, false}));
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

/// The matrices of a model as weights that have to be made, and how often each was.
struct MadeWeights {
  explicit MadeWeights(const TinyModel& model) : table(model.weights()) {
    for (std::size_t i = 0; i < table.size(); ++i) {
      if (table[i].tensor.shape.rank() > 1) {
        table[i].origin.make = [this, i, data = table[i].tensor.data]() -> Result<Buffer> {
          ++n_made[i];
          Buffer made(static_cast<std::int64_t>(data.size()));
          std::ranges::copy(data, made.bytes().begin());
          return made;
        };
        table[i].tensor.data = {};
      }
    }
  }

  graph::WeightTable table;
  std::map<std::size_t, int> n_made;
};

/// Logits of a short prompt, and the weights' bytes in memory, from a session on `weights`.
std::pair<std::vector<float>, std::int64_t> run_once(const TinyModel& model,
                                                     const graph::WeightTable& weights,
                                                     WeightLayout layout) {
  const auto backend = make_cpu_backend({.n_threads = 2, .layout = layout}).value();
  const auto session =
      backend->open(weights, {model.kv_cache(DType::f16, 1), model.states(1), {}}).value();
  const auto plan = plan::make_plan(model.record({4, 1}), weights, backend->plan_options());
  const auto first = session->compile(plan).value();
  const auto executable = session->compile(plan).value();  // makes nothing again
  const std::vector<TokenId> tokens{TokenId{1}, TokenId{2}, TokenId{3}};
  const std::vector<std::int32_t> positions{0, 1, 2};
  const std::vector<std::int32_t> zeros(3);
  const std::vector<std::int32_t> logit_rows{2};
  const auto logits = executable
                          ->run({.tokens = tokens,
                                 .positions = positions,
                                 .sequences = zeros,
                                 .logit_rows = logit_rows,
                                 .block_tables = std::span(zeros).first(1),
                                 .table_stride = 1,
                                 .state_slots = std::span(zeros).first(1)})
                          .value();
  return {{logits.begin(), logits.end()}, session->memory().weight_bytes};
}

TEST(CpuBackend, WeightsThatHaveToBeMadeAreMadeOnceAndKeptInOneForm) {
  const TinyModel model(Family::hybrid, {}, {quant::find("Q4_1")->dtype, DType::bf16});
  std::int64_t all_bytes = 0;
  for (const auto& weight : model.weights()) {
    all_bytes += weight.tensor.shape.rank() > 1 ? weight.n_bytes() : 0;
  }
  for (const WeightLayout layout : {WeightLayout::tiles, WeightLayout::mapped}) {
    const auto [expected, tile_bytes] = run_once(model, model.weights(), layout);
    MadeWeights made(model);
    const auto [logits, bytes] = run_once(model, made.table, layout);
    EXPECT_EQ(logits, expected);
    EXPECT_EQ(made.n_made.size(),
              static_cast<std::size_t>(std::ranges::count_if(
                  made.table, [](const auto& w) { return w.origin.make != nullptr; })));
    EXPECT_TRUE(std::ranges::all_of(made.n_made, [](const auto& n) { return n.second == 1; }));
    // Tiles may end with a panel that is not full.
    EXPECT_GE(bytes, all_bytes);
    EXPECT_LT(bytes, all_bytes + all_bytes / 10);
    EXPECT_LT(tile_bytes, bytes);  // the table of tokens is read as it is, from the file
  }
}

TEST(CpuBackend, AWeightThatCannotBeMadeIsAnErrorOfCompiling) {
  const TinyModel model(Family::llama, {.n_layers = 1}, {DType::f16});
  MadeWeights made(model);
  made.table[index(model.down_of_last_layer())].origin.make = []() -> Result<Buffer> {
    return fail(ErrorCode::invalid_file, "tensor 'x': no numbers");
  };
  const auto backend = make_cpu_backend({.n_threads = 1}).value();
  const auto session = backend->open(made.table, {model.kv_cache(DType::f16, 1), {}, {}}).value();
  const auto executable =
      session->compile(plan::make_plan(model.record({4, 1}), made.table, backend->plan_options()));
  ASSERT_FALSE(executable.has_value());
  EXPECT_EQ(executable.error().message, "tensor 'x': no numbers");
}

TEST(LoadedWeights, HaveDataForEveryWeight) {
  const TinyModel model(Family::llama, {.n_layers = 1}, {DType::f16});
  const MadeWeights made(model);
  const auto loaded = graph::LoadedWeights::load(made.table);
  ASSERT_TRUE(loaded) << loaded.error().message;
  std::int64_t made_bytes = 0;
  for (std::size_t i = 0; i < made.table.size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(loaded->table()[i].tensor.data, model.weights()[i].tensor.data));
    made_bytes += made.table[i].origin.make ? made.table[i].n_bytes() : 0;
  }
  EXPECT_EQ(loaded->bytes(), made_bytes);
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
