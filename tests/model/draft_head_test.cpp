/// MTP heads that have a file of their own.

#include "model/draft_head.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/half.h"
#include "formats/gguf/writer.h"
#include "model/model.h"
#include "quant/registry.h"
#include "tests/formats/gguf/scratch_folder.h"
#include "tests/model/golden_model.h"
#include "tests/model/huggingface/describe_checkpoint.h"
#include "tests/model/model_file.h"

namespace hearth::model {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

/// tests/golden/arch/qwen35moe.gguf, whose block 4 is an MTP head, as two files.
class SplitModel : public testing::Test {
 protected:
  static constexpr const char* head_block = "blk.4.";

  void SetUp() override {
    ModelFile trunk("qwen35moe");
    std::erase_if(trunk.tensors,
                  [](const auto& tensor) { return tensor.name.starts_with(head_block); });
    trunk.metadata.set("qwen35moe.block_count", std::uint32_t{4});
    trunk.metadata.set("qwen35moe.nextn_predict_layers", std::uint32_t{0});
    write(trunk, trunk_path_);
    ModelFile head("qwen35moe");
    std::erase_if(head.tensors, [](const auto& tensor) {
      return !tensor.name.starts_with(head_block) && tensor.name != "token_embd.weight";
    });
    write(head, head_path_);
  }

  static void write(const ModelFile& file, const std::filesystem::path& path) {
    const auto written = formats::write_gguf(path, file.metadata, file.tensors);
    ASSERT_TRUE(written) << written.error().message;
  }

  formats::ScratchFolder scratch_;
  std::filesystem::path whole_path_ = load_golden_model("qwen35moe").gguf_path;
  std::filesystem::path trunk_path_ = scratch_.file("trunk.gguf");
  std::filesystem::path head_path_ = scratch_.file("mtp-head.gguf");
};

TEST_F(SplitModel, IsKnownByWhatItLacks) {
  EXPECT_TRUE(is_draft_head(*Checkpoint::open(head_path_)));
  EXPECT_FALSE(is_draft_head(*Checkpoint::open(trunk_path_)));
  EXPECT_FALSE(is_draft_head(*Checkpoint::open(whole_path_)));
  EXPECT_FALSE(is_draft_head(*Checkpoint::open(golden_folder("llama"))));
}

TEST_F(SplitModel, IsTheWholeOneAgainWhenItIsJoined) {
  const auto joined =
      join_draft_head(*Checkpoint::open(trunk_path_), *Checkpoint::open(head_path_));
  ASSERT_TRUE(joined) << joined.error().message;
  EXPECT_THAT(describe(*joined), ElementsAreArray(describe(*Checkpoint::open(whole_path_))));
  EXPECT_THAT(joined->notes().front(), HasSubstr("1 tensors beside the MTP head are left out"));
}

TEST_F(SplitModel, OpensWithItsHead) {
  const auto alone = Model::open(trunk_path_);
  ASSERT_TRUE(alone) << alone.error().message;
  EXPECT_EQ((*alone)->mtp(), nullptr);
  const auto joined = Model::open(trunk_path_, *Checkpoint::open(head_path_));
  ASSERT_TRUE(joined) << joined.error().message;
  EXPECT_NE((*joined)->mtp(), nullptr);
  EXPECT_EQ((*joined)->params().n_layers, (*alone)->params().n_layers);
}

TEST_F(SplitModel, RefusesTheHeadOfAnotherModel) {
  const auto error_of = [](const std::filesystem::path& trunk, const std::filesystem::path& head) {
    const auto joined = join_draft_head(*Checkpoint::open(trunk), *Checkpoint::open(head));
    return joined ? "no error" : joined.error().message;
  };
  EXPECT_THAT(error_of(load_golden_model("qwen35").gguf_path, head_path_),
              HasSubstr("expected an MTP head of qwen35 with 4 layers, found one of qwen35moe"));
  ModelFile shallow("qwen35moe");
  shallow.metadata.set("qwen35moe.block_count", std::uint32_t{3});
  shallow.metadata.set("qwen35moe.nextn_predict_layers", std::uint32_t{0});
  write(shallow, scratch_.file("shallow.gguf"));
  EXPECT_THAT(error_of(scratch_.file("shallow.gguf"), head_path_),
              HasSubstr("with 3 layers, found one of qwen35moe with 4"));
  EXPECT_THAT(error_of(whole_path_, head_path_), HasSubstr("found one with its own"));
}

std::vector<float> floats_of(const CheckpointTensor& tensor) {
  const auto data = tensor.copy();
  std::vector<float> values(static_cast<std::size_t>(tensor.shape.elements()));
  quant::decode(tensor.dtype, data->bytes(), values);
  return values;
}

/// mlx-vlm adds the one to norms and rounds to BF16 again; all other numbers stay.
TEST(MlxDrafter, IsTheHeadOfTheFolderThatItWasSplitFrom) {
  const auto drafter = Checkpoint::open(golden_mlx_folder("drafters") / "qwen35moe");
  ASSERT_TRUE(drafter) << drafter.error().message;
  EXPECT_TRUE(is_draft_head(*drafter));
  const auto whole = *Checkpoint::open(golden_folder("qwen35moe-fused-mtp"));
  std::size_t n_of_head = 0;
  for (const auto& tensor : whole.tensors()) {
    n_of_head += tensor.name.starts_with("blk.2.") ? 1 : 0;
  }
  EXPECT_EQ(drafter->tensors().size(), n_of_head);
  for (const auto& tensor : drafter->tensors()) {
    const auto* same = whole.find(tensor.name);
    ASSERT_NE(same, nullptr) << tensor.name;
    EXPECT_EQ(tensor.dtype, same->dtype) << tensor.name;
    EXPECT_EQ(tensor.shape, same->shape) << tensor.name;
    auto expected = floats_of(*same);
    if (tensor.name.find("norm") != std::string::npos) {
      for (float& weight : expected) {
        weight = to_float(to_bfloat16(weight));
      }
    }
    EXPECT_EQ(floats_of(tensor), expected) << tensor.name;
  }
}

}  // namespace
}  // namespace hearth::model
