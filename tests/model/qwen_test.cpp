/// Files of the Qwen family: what must be refused, and what may differ.

#include <array>
#include <limits>
#include <span>

#include <gtest/gtest.h>

#include "tests/model/model_file.h"

namespace hearth::model {
namespace {

std::unique_ptr<const Model> open(const std::string& name) {
  auto model = ModelFile(name).open();
  EXPECT_TRUE(model.has_value()) << model.error().message;
  return std::move(*model);
}

TEST(Qwen, OpensEveryVariantWithoutWarnings) {
  for (const auto& name : golden_model_names()) {
    if (name.starts_with("qwen")) {
      EXPECT_TRUE(open(name)->warnings().empty()) << open(name)->warnings().front();
    }
  }
}

TEST(Qwen, LeavesAPredictionBlockOutOfTheTrunk) {
  const auto model = open("qwen35-heads");
  EXPECT_EQ(model->params().n_layers, 3);
  EXPECT_EQ(model->kv_layers().size(), 1u);
  EXPECT_EQ(model->state_layers().size(), 2u);
  EXPECT_NE(model->checkpoint().find("blk.3.nextn.eh_proj.weight"), nullptr);
}

TEST(Qwen, CountsNoLayerTwiceWhenAllBlocksPredict) {
  ModelFile file("qwen35");
  file.metadata.set("qwen35.nextn_predict_layers", std::uint32_t{4});
  file.expect_refused(ErrorCode::invalid_file, {"qwen35.nextn_predict_layers is 4"});
}

TEST(Qwen, KeepsStateForRecurrentLayersAndKeysForTheOthers) {
  const auto model = open("qwen35moe");
  EXPECT_EQ(model->kv_layers().size(), 1u);
  const auto layers = model->state_layers();
  ASSERT_EQ(layers.size(), 3u);
  EXPECT_EQ(layers.front(), (graph::StateLayer{.n_heads = 4,
                                               .key_dim = 16,
                                               .value_dim = 16,
                                               .conv_channels = 2 * 32 + 64,
                                               .conv_taps = 4}));
}

TEST(Qwen, RefusesDecayRatesThatWereNotTransformed) {
  for (const float bad : {0.0f, 0.7f, std::numeric_limits<float>::quiet_NaN()}) {
    ModelFile file("qwen35");
    const std::array rates{-0.5f, bad};
    file.tensor("blk.1.ssm_a") = formats::tensor_to_write(
        "blk.1.ssm_a", {DType::f32, Shape{2}, std::as_bytes(std::span(rates))});
    file.expect_refused(ErrorCode::invalid_file, {"'blk.1.ssm_a'", " at 1", "below zero"});
  }
}

TEST(Qwen, TakesTheBiasOfTheDecayUnderEitherName) {
  ModelFile file("qwen35");
  file.tensor("blk.0.ssm_dt.bias").name = "blk.0.ssm_dt";
  const auto model = file.open();
  EXPECT_TRUE(model.has_value()) << model.error().message;
}

TEST(Qwen, ChecksHowRotaryPairsDivideAmongTheAxes) {
  const auto with_sections = [](std::vector<std::int32_t> sections) {
    ModelFile file("qwen35");
    file.metadata.set_array<std::int32_t>("qwen35.rope.dimension_sections", sections);
    return file;
  };
  EXPECT_TRUE(with_sections({2, 1, 1}).open().has_value());
  for (const auto& sections : {std::vector{2, 1, 2, 0}, std::vector{5, -1, 0}, std::vector{2, 2}}) {
    with_sections(sections).expect_refused(ErrorCode::invalid_file, {"dimension_sections"});
  }
}

TEST(Qwen, TakesLayerTypesAsNumbersToo) {
  ModelFile file("qwen35-heads");
  file.metadata.set_array<std::int32_t>("qwen35.attention.recurrent_layers",
                                        std::array{0, 1, 1, 0});
  const auto model = file.open();
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_EQ((*model)->state_layers().size(), 2u);
  file.metadata.set_array<std::int32_t>("qwen35.attention.recurrent_layers", std::array{0, 1});
  file.expect_refused(ErrorCode::invalid_file, {"recurrent_layers has 2 entries", "3 layers"});
}

TEST(Qwen, RefusesCountsThatDoNotFitEachOther) {
  struct Wrong {
    const char* model;
    const char* key;
    std::uint32_t value;
  };
  for (const auto& [model, key, value] :
       {Wrong{"qwen35", "qwen35.ssm.time_step_rank", 3},
        Wrong{"qwen35", "qwen35.ssm.inner_size", 33}, Wrong{"qwen35", "qwen35.ssm.conv_kernel", 1},
        Wrong{"qwen35moe", "qwen35moe.expert_used_count", 9},
        Wrong{"qwen35moe", "qwen35moe.expert_count", 0},
        Wrong{"qwen3moe", "qwen3moe.expert_feed_forward_length", 17}}) {
    ModelFile file(model);
    file.metadata.set(key, value);
    const auto opened = file.open();
    EXPECT_FALSE(opened.has_value()) << key;
  }
}

TEST(Qwen, LeavesRowsOfTheHeadOutThatBelongToNoToken) {
  const auto model = open("qwen35");  // 276 rows for 267 tokens
  EXPECT_EQ(model->params().vocab, 276);
  EXPECT_EQ(model->n_usable_tokens(), 267);
}

TEST(Qwen, LeavesUnusedTokensAtTheEndOfTheVocabularyOut) {
  ModelFile file("qwen3");
  auto types = *file.metadata.get_array<std::int32_t>("tokenizer.ggml.token_type");
  constexpr std::int32_t unused = 5;
  types[10] = unused;  // has tokens behind it
  types[types.size() - 2] = unused;
  types[types.size() - 1] = unused;
  file.metadata.set_array<std::int32_t>("tokenizer.ggml.token_type", types);
  const auto model = file.open();
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_EQ((*model)->n_usable_tokens(), (*model)->params().vocab - 2);
}

}  // namespace
}  // namespace hearth::model
