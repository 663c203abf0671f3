/// Folders that MLX quantized: where they differ from those of transformers, and what is wrong with
/// some.

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/half.h"
#include "model/convert.h"
#include "model/tokenizer_from_gguf.h"
#include "quant/registry.h"
#include "tests/formats/gguf/scratch_folder.h"
#include "tests/model/golden_model.h"
#include "tests/model/huggingface/folder_copy.h"

namespace hearth::model {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Checkpoint open_mlx(const std::string& name) {
  return *Checkpoint::open(golden_mlx_folder(name));
}

std::string_view type_of(const Checkpoint& checkpoint, std::string_view tensor) {
  const auto* found = checkpoint.find(tensor);
  return found == nullptr ? "missing" : quant::name(found->dtype);
}

TEST(MlxFolder, HasBlocksOfTheBitsGroupsAndScalesOfItsConfig) {
  const auto llama = open_mlx("llama");
  EXPECT_EQ(llama.format(), "MLX safetensors");
  EXPECT_EQ(type_of(llama, "token_embd.weight"), "AFFINE4_BF16");
  EXPECT_EQ(type_of(llama, "output.weight"), "AFFINE6_BF16");  // by its own entry
  EXPECT_EQ(type_of(llama, "blk.0.ffn_down.weight"), "AFFINE4_BF16");
  EXPECT_EQ(type_of(llama, "blk.1.ffn_down.weight"), "BF16");  // by its entry `false`
  EXPECT_EQ(type_of(open_mlx("gemma3"), "blk.0.attn_q.weight"), "AFFINE8_F16");
  const auto qwen35 = open_mlx("qwen35");
  EXPECT_EQ(type_of(qwen35, "blk.0.attn_qkv.weight"), "AFFINE3_F32");  // groups of 32
  EXPECT_EQ(type_of(qwen35, "blk.0.attn_gate.weight"), "AFFINE5_F32");
  EXPECT_EQ(type_of(qwen35, "blk.1.attn_output.weight"), "AFFINE2_F32");
}

TEST(MlxFolder, HasTheFloatModesAsTheBlocksOfGguf) {
  EXPECT_EQ(type_of(open_mlx("qwen3-mxfp4"), "blk.0.attn_q.weight"), "MXFP4");
  EXPECT_EQ(type_of(open_mlx("qwen3moe-nvfp4"), "blk.0.ffn_up_exps.weight"), "NVFP4");
}

TEST(MlxFolder, StacksExpertsUnderTheNameOfMlx) {
  const auto checkpoint = open_mlx("qwen35moe");
  for (const char* name : {"gate", "up", "down"}) {
    const auto* experts = checkpoint.find("blk.0.ffn_" + std::string(name) + "_exps.weight");
    ASSERT_NE(experts, nullptr) << name;
    EXPECT_EQ(experts->shape, (Shape{4, 64, 64}));
  }
}

TEST(MlxFolder, HasQuantizedRoutersAsFloats) {
  const auto checkpoint = open_mlx("qwen35moe");
  EXPECT_EQ(type_of(checkpoint, "blk.0.ffn_gate_inp.weight"), "F32");
  EXPECT_EQ(checkpoint.find("blk.0.ffn_gate_inp_shexp.weight")->shape, (Shape{64}));
}

/// The first number of a vector in F32.
float first_of(const Checkpoint& checkpoint, std::string_view tensor) {
  const auto data = checkpoint.find(tensor)->copy();
  return data ? load<float>(data->bytes().data()) : 0.0f;
}

/// The first number of a vector in BF16 as the file has it.
float first_in_file(const Checkpoint& checkpoint, const std::string& file_text,
                    const std::string& tensor) {
  static_cast<void>(checkpoint);
  const auto header_bytes = load<std::uint64_t>(file_text.data());
  const auto entry = file_text.find("\"" + tensor + "\"");
  const auto offsets = file_text.find("\"data_offsets\":[", entry) + 16;
  const auto offset = std::stoul(file_text.substr(offsets, 20));
  return to_float(load<BFloat16>(file_text.data(), 8 + header_bytes + offset));
}

TEST(MlxFolder, NormsOfHybridsHaveTheirOneAlready) {
  const FolderCopy folder("qwen35", golden_mlx_folder);
  const auto checkpoint = *folder.open();
  const std::string stored = "language_model.model.layers.0.input_layernorm.weight";
  EXPECT_EQ(first_of(checkpoint, "blk.0.attn_norm.weight"),
            first_in_file(checkpoint, folder.read("model.safetensors"), stored));
}

}  // namespace
}  // namespace hearth::model
