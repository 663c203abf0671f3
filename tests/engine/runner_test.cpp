#include "engine/runner.h"

#include <gtest/gtest.h>

#include "tests/engine/engine_backend.h"
#include "tests/model/golden_model.h"

namespace hearth::engine {
namespace {

TEST(RowBucket, IsTheSmallestThatFitsUpToTheLimit) {
  EXPECT_EQ(row_bucket(1, 512), 1);
  EXPECT_EQ(row_bucket(9, 512), 12);
  EXPECT_EQ(row_bucket(129, 512), 256);
  EXPECT_EQ(row_bucket(300, 400), 400);
}

TEST(Runner, MemoryIsCounted) {
  const auto golden = model::load_golden_model("llama");
  const auto model = *model::Model::open(golden.gguf_path);
  const auto backend = engine_backend(1);
  const auto runner =
      *Runner::create(*model, *backend, {.n_kv_blocks = 3, .max_rows = 16, .max_logit_rows = 1});
  EXPECT_GT(runner->memory().weight_bytes, 0);  // tiles
  const auto layer = model->kv_layers().front();
  const auto n_layers = static_cast<std::int64_t>(model->kv_layers().size());
  EXPECT_EQ(runner->memory().kv_bytes, n_layers * 3 * 16 * layer.n_kv_heads *
                                           (layer.head_dim + graph::value_stride(layer.head_dim)) *
                                           2);
  EXPECT_GT(runner->memory().workspace_bytes, 0);
}

TEST(Runner, ALlamaStepTakesFiveLaunchesPerLayerAndReadsEveryWeightOnce) {
  const auto golden = model::load_golden_model("llama");
  const auto model = *model::Model::open(golden.gguf_path);
  const auto backend = engine_backend(1);
  const auto runner =
      *Runner::create(*model, *backend, {.n_kv_blocks = 3, .max_rows = 16, .max_logit_rows = 1});
  const auto cost = runner->cost(1, 1);
  ASSERT_TRUE(cost.has_value());
  // Embedding, row selection, head, the largest logit.
  EXPECT_EQ(cost->n_launches, 5 * model->params().n_layers + 4);
  std::int64_t bytes = 0;
  for (const auto& weight : model->weights()) {
    bytes += weight.name == "token_embd.weight" ? 0 : weight.n_bytes();
  }
  EXPECT_EQ(cost->weight_bytes, bytes);
}

}  // namespace
}  // namespace hearth::engine
