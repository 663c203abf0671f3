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
  EXPECT_EQ(type.error().message, "type \"q4_k\": expected one of bf16, f16, f32");
}

}  // namespace
}  // namespace hearth::model
