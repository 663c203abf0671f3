#include "model/convert.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/half.h"
#include "quant/registry.h"
#include "tests/formats/gguf/scratch_folder.h"
#include "tests/model/golden_model.h"

namespace hearth::model {
namespace {

using ::testing::HasSubstr;

/// A checkpoint of two tensors, a matrix and a norm.
Checkpoint tiny_checkpoint(std::vector<float>& weights) {
  Checkpoint::Parts parts{.name = "tiny", .format = "test"};
  parts.metadata.set("general.architecture", std::string_view("llama"));
  const Bytes data = std::as_bytes(std::span(weights));
  parts.tensors.push_back(
      {.name = "a.weight", .dtype = DType::f32, .shape = {2, 2}, .mapped = data});
  parts.tensors.push_back(
      {.name = "a_norm.weight", .dtype = DType::f32, .shape = {4}, .mapped = data});
  parts.shard_names = {"tiny.safetensors"};
  return Checkpoint(std::move(parts));
}

bool go_on(std::int64_t /*done*/, std::int64_t /*total*/) {
  return true;
}

class Convert : public testing::Test {
 protected:
  formats::ScratchFolder scratch_;
  std::filesystem::path path_ = scratch_.file("out.gguf");
  std::vector<float> weights_{1.0f, -2.5f, 0.1f, 65504.0f};
};

TEST_F(Convert, WeightsTakeTheTypeAndNormsDoNot) {
  const auto checkpoint = tiny_checkpoint(weights_);
  for (const auto& [name, file_type] :
       std::vector<std::pair<std::string, std::uint32_t>>{{"bf16", 0}, {"f16", 0}, {"f32", 0}}) {
    const auto type = find_target_type(name);
    ASSERT_TRUE(type) << type.error().message;
    const auto report = convert_to_gguf(checkpoint, path_, *type, go_on);
    ASSERT_TRUE(report) << report.error().message;
    const auto file = Checkpoint::open(path_);
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->find("a.weight")->dtype, *type);
    EXPECT_EQ(file->find("a_norm.weight")->dtype, DType::f32);
    std::vector<float> decoded(4);
    quant::decode(*type, file->find("a.weight")->mapped, decoded);
    for (std::size_t i = 0; i < decoded.size(); ++i) {
      EXPECT_NEAR(decoded[i], weights_[i], std::abs(weights_[i]) / 256) << name;
    }
  }
}

TEST_F(Convert, RoundsToNearestEven) {
  weights_ = {1.0f + 0x1p-8f, 1.0f + 0x1.8p-7f, 1.0f + 0x1p-11f, 1.0f + 0x1.8p-10f};
  const auto checkpoint = tiny_checkpoint(weights_);
  ASSERT_TRUE(convert_to_gguf(checkpoint, path_, DType::bf16, go_on));
  const auto bf16 = Checkpoint::open(path_);
  EXPECT_EQ(load<std::uint16_t>(bf16->find("a.weight")->mapped.data()), 0x3f80);
  EXPECT_EQ(load<std::uint16_t>(bf16->find("a.weight")->mapped.data(), 2), 0x3f82);
  ASSERT_TRUE(convert_to_gguf(checkpoint, path_, DType::f16, go_on));
  const auto f16 = Checkpoint::open(path_);
  EXPECT_EQ(load<std::uint16_t>(f16->find("a.weight")->mapped.data(), 4), 0x3c00);
  EXPECT_EQ(load<std::uint16_t>(f16->find("a.weight")->mapped.data(), 6), 0x3c02);
}

TEST_F(Convert, Q8_0IsForMatricesWhoseRowsAreWholeBlocks) {
  weights_.assign(64, 0.0f);
  for (std::size_t i = 0; i < 32; ++i) {  // the second block stays zero
    weights_[i] = static_cast<float>(i) - 12.7f;
  }
  Checkpoint::Parts parts{.name = "tiny", .format = "test", .shard_names = {"tiny.safetensors"}};
  parts.metadata.set("general.architecture", std::string_view("llama"));
  const Bytes data = std::as_bytes(std::span(weights_));
  const auto add = [&](const char* name, Shape shape) {
    parts.tensors.push_back({.name = name, .dtype = DType::f32, .shape = shape, .mapped = data});
  };
  add("blocks.weight", {2, 32});
  add("short_rows.weight", {4, 16});
  add("ffn_gate_inp.weight", {2, 32});
  ASSERT_TRUE(
      convert_to_gguf(Checkpoint(std::move(parts)), path_, *find_target_type("q8_0"), go_on));
  const auto file = Checkpoint::open(path_);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->find("short_rows.weight")->dtype, DType::f16);
  EXPECT_EQ(file->find("ffn_gate_inp.weight")->dtype, DType::f32);
  const auto* blocks = file->find("blocks.weight");
  ASSERT_EQ(blocks->dtype, *find_target_type("Q8_0"));
  std::vector<float> decoded(64);
  quant::decode(blocks->dtype, blocks->mapped, decoded);
  const float step = 18.3f / 127;  // the largest magnitude is that of the last weight
  for (std::size_t i = 0; i < decoded.size(); ++i) {
    // Half a step, and what rounding the scale to f16 adds at the far end.
    EXPECT_NEAR(decoded[i], weights_[i], step / 2 + 18.3f * 0x1p-11f) << i;
  }
  EXPECT_EQ(decoded[31], to_float(to_half(step)) * 127);
}

TEST_F(Convert, AWeightThatTheTypeCannotHoldIsAnError) {
  weights_[2] = 65520.0f;
  const auto checkpoint = tiny_checkpoint(weights_);
  const auto report = convert_to_gguf(checkpoint, path_, DType::f16, go_on);
  ASSERT_FALSE(report);
  EXPECT_THAT(
      report.error().message,
      HasSubstr("tiny.safetensors: tensor \"a.weight\": expected weights that f16 can hold, "
                "found 65520"));
  EXPECT_EQ(scratch_.n_files(), 0u);
}

TEST_F(Convert, StoppingLeavesNothingBehind) {
  const auto checkpoint = tiny_checkpoint(weights_);
  const auto report =
      convert_to_gguf(checkpoint, path_, std::nullopt, [](std::int64_t done, std::int64_t total) {
        EXPECT_EQ(total, 32);
        return done < total;
      });
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::cancelled);
  EXPECT_EQ(scratch_.n_files(), 0u);
}

TEST_F(Convert, AGgufFileCanBeConvertedToo) {
  const auto checkpoint = Checkpoint::open(load_golden_model("llama").gguf_path);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  ASSERT_TRUE(convert_to_gguf(*checkpoint, path_, std::nullopt, go_on));
  const auto copy = Checkpoint::open(path_);
  ASSERT_TRUE(copy) << copy.error().message;
  for (const auto& tensor : checkpoint->tensors()) {
    const auto* same = copy->find(tensor.name);
    ASSERT_NE(same, nullptr) << tensor.name;
    EXPECT_TRUE(std::ranges::equal(same->mapped, tensor.mapped)) << tensor.name;
  }
}

TEST(TargetTypes, AnUnknownTypeIsRefusedWithTheKnownOnes) {
  const auto type = find_target_type("q4_k");
  ASSERT_FALSE(type);
  EXPECT_EQ(type.error().message, "type \"q4_k\": expected one of bf16, f16, f32, q8_0");
}

}  // namespace
}  // namespace hearth::model
