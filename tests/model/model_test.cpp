/// Model files that are well-formed containers but not sound models, made from a golden one by
/// changing one thing.

#include "model/model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/model/model_file.h"

namespace hearth::model {
namespace {

TEST(Model, OpensAGoldenFileWithoutWarnings) {
  const auto model = ModelFile("llama").open();
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_EQ((*model)->architecture(), "llama");
  EXPECT_TRUE((*model)->warnings().empty());
  EXPECT_EQ((*model)->params().vocab, static_cast<std::int64_t>((*model)->tokenizer().n_tokens()));
}

TEST(Model, AnUnknownArchitectureIsRefusedWithTheKnownOnes) {
  ModelFile file("llama");
  file.metadata.set("general.architecture", std::string_view("mamba"));
  file.expect_refused(ErrorCode::unsupported, {"'mamba'", "gemma3, llama"});
}

TEST(Model, AMissingTensorIsNamed) {
  ModelFile file("llama");
  file.remove("blk.1.ffn_up.weight");
  file.expect_refused(ErrorCode::invalid_file, {"'blk.1.ffn_up.weight'", "missing"});
}

TEST(Model, ATensorOfAnotherShapeIsRefusedWithBothShapes) {
  ModelFile file("llama");
  file.metadata.set("llama.feed_forward_length", std::uint32_t{32});
  file.expect_refused(ErrorCode::invalid_file, {"'blk.0.ffn_gate.weight'", "expected [32, 64]"});
}

TEST(Model, ATensorThatNothingUsesIsAWarning) {
  ModelFile file("llama");
  file.tensors.push_back(file.tensor("output_norm.weight"));
  file.tensors.back().name = "mystery.weight";
  const auto model = file.open();
  ASSERT_TRUE(model.has_value()) << model.error().message;
  ASSERT_EQ((*model)->warnings().size(), 1u);
  EXPECT_NE((*model)->warnings().front().find("'mystery.weight'"), std::string::npos);
}

TEST(Model, HostileCountsAreRefusedWithTheirKey) {
  struct Hostile {
    const char* key;
    std::uint64_t value;
  };
  for (const auto& [key, value] :
       std::vector<Hostile>{{"llama.block_count", 0},
                            {"llama.block_count", 100000},
                            {"llama.block_count", ~std::uint64_t{0}},
                            {"llama.embedding_length", 0},
                            {"llama.embedding_length", std::uint64_t{1} << 40},
                            {"llama.attention.head_count", 0},
                            {"llama.attention.head_count_kv", 0},
                            {"llama.attention.head_count_kv", 3},
                            {"llama.context_length", 0},
                            {"llama.rope.dimension_count", 0}}) {
    ModelFile file("llama");
    file.metadata.set(key, value);
    file.expect_refused(ErrorCode::invalid_file, {key});
  }
}

TEST(Model, HostileFloatsAreRefusedWithTheirKey) {
  for (const float value : {0.0f, -1.0f, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    for (const char* key : {"llama.rope.freq_base", "llama.attention.layer_norm_rms_epsilon"}) {
      ModelFile file("llama");
      file.metadata.set(key, value);
      file.expect_refused(ErrorCode::invalid_file, {key});
    }
  }
}

TEST(Model, AnUnknownRopeScalingIsRefused) {
  ModelFile file("llama");
  file.metadata.set("llama.rope.scaling.type", std::string_view("longrope"));
  file.expect_refused(ErrorCode::unsupported, {"llama.rope.scaling.type", "'longrope'"});
}

TEST(Model, AWindowPatternShorterThanTheModelIsRefused) {
  ModelFile file("gemma3");
  const std::array<bool, 2> pattern{true, false};
  file.metadata.set_array<bool>("gemma3.attention.sliding_window_pattern", pattern);
  file.expect_refused(ErrorCode::invalid_file,
                      {"gemma3.attention.sliding_window_pattern", "2 entries"});
}

TEST(Model, NormsStoredAsBFloat16AreWidened) {
  ModelFile file("llama");
  const std::vector<std::uint16_t> ones(64, 0x3f80);
  const auto bytes = std::as_bytes(std::span(ones));
  file.tensor("output_norm.weight") =
      formats::tensor_to_write("output_norm.weight", {DType::bf16, Shape{64}, bytes});
  const auto model = file.open();
  ASSERT_TRUE(model.has_value()) << model.error().message;
  for (const auto& weight : (*model)->weights()) {
    if (weight.name == "output_norm.weight") {
      EXPECT_EQ(weight.tensor.dtype, DType::f32);
      EXPECT_EQ(load<float>(weight.tensor.data.data(), 4 * 63), 1.0f);
    }
  }
}

TEST(Model, AMatrixOfIntegersIsRefused) {
  ModelFile file("llama");
  const std::vector<std::int32_t> numbers(64 * 64, 1);
  const auto bytes = std::as_bytes(std::span(numbers));
  file.tensor("blk.0.attn_output.weight") =
      formats::tensor_to_write("blk.0.attn_output.weight", {DType::i32, Shape{64, 64}, bytes});
  file.expect_refused(ErrorCode::invalid_file, {"'blk.0.attn_output.weight'", "I32"});
}

TEST(ReadRope, YarnKeysBecomeItsParameters) {
  formats::Metadata metadata;
  metadata.set("llama.rope.scaling.type", std::string_view("yarn"));
  metadata.set("llama.rope.scaling.factor", 4.0f);
  metadata.set("llama.rope.scaling.original_context_length", std::uint32_t{1024});
  metadata.set("llama.rope.scaling.yarn_beta_fast", 16.0f);
  metadata.set("llama.rope.scaling.yarn_attn_factor", 1.25f);
  const auto rope = read_rope(ArchKeys(metadata, "llama"), {.context = 4096, .head_dim = 64});
  ASSERT_TRUE(rope.has_value()) << rope.error().message;
  EXPECT_EQ(rope->position_scale, 0.25f);
  EXPECT_EQ(rope->yarn,
            (graph::Yarn{.magnitude = 1.25f, .beta_fast = 16, .original_context = 1024}));
  EXPECT_EQ(graph::RopeTable(*rope, {}).magnitude, 1.25f);
}

}  // namespace
}  // namespace hearth::model
