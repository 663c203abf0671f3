/// Folders that MLX quantized: where they differ from those of transformers, and what is wrong with
/// some.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/assert.h"
#include "formats/safetensors/reader.h"
#include "model/convert.h"
#include "model/huggingface/gather.h"
#include "model/huggingface/mlx_groups.h"
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

/// What the folder itself has under a name.
const formats::SafetensorsTensor& stored(const formats::SafetensorsModel& files,
                                         const std::string& name) {
  const auto* found = files.find(name);
  HEARTH_ASSERT(found != nullptr);
  return *found;
}

std::vector<float> floats_of(const Checkpoint& checkpoint, std::string_view name) {
  const auto* tensor = checkpoint.find(name);
  const auto data = tensor->copy();
  std::vector<float> values(static_cast<std::size_t>(tensor->shape.elements()));
  quant::decode(tensor->dtype, data->bytes(), values);
  return values;
}

std::vector<float> floats_of(const formats::SafetensorsTensor& tensor) {
  std::vector<float> values(tensor.data.size() / formats::info(tensor.type).n_bytes);
  quant::decode(*formats::info(tensor.type).dtype, tensor.data, values);
  return values;
}

/// The dimensions of tests/golden/mlx/qwen35.
constexpr std::size_t n_channels = 192;
constexpr std::size_t n_value_channels = 128;
constexpr std::size_t n_taps = 4;

TEST(MlxFolder, NormsOfHybridsHaveTheirOneAlready) {
  const auto files = *formats::SafetensorsModel::open(golden_mlx_folder("qwen35"));
  const auto checkpoint = open_mlx("qwen35");
  const std::string layer = "language_model.model.layers.";
  for (const auto& [name, from] : std::vector<std::pair<std::string, std::string>>{
           {"output_norm.weight", "language_model.model.norm.weight"},
           {"blk.0.attn_norm.weight", layer + "0.input_layernorm.weight"},
           {"blk.1.attn_q_norm.weight", layer + "1.self_attn.q_norm.weight"},
           {"blk.0.ssm_norm.weight", layer + "0.linear_attn.norm.weight"}}) {
    EXPECT_EQ(floats_of(checkpoint, name), floats_of(stored(files, from))) << name;
  }
}

TEST(MlxFolder, NormsOfGemmaDoNot) {
  const auto files = *formats::SafetensorsModel::open(golden_mlx_folder("gemma3"));
  auto expected = floats_of(stored(files, "model.layers.0.input_layernorm.weight"));
  for (float& weight : expected) {
    weight += 1.0f;
  }
  EXPECT_EQ(floats_of(open_mlx("gemma3"), "blk.0.attn_norm.weight"), expected);
}

TEST(MlxFolder, ConvolutionsHaveTheirTapsInTheMiddle) {
  const auto files = *formats::SafetensorsModel::open(golden_mlx_folder("qwen35"));
  const auto& from = stored(files, "language_model.model.layers.0.linear_attn.conv1d.weight");
  ASSERT_EQ(from.shape, (std::vector<std::int64_t>{n_channels, n_taps, 1}));
  const auto checkpoint = open_mlx("qwen35");
  EXPECT_EQ(checkpoint.find("blk.0.ssm_conv1d.weight")->shape, (Shape{n_channels, n_taps}));
  const auto found = floats_of(checkpoint, "blk.0.ssm_conv1d.weight");
  const auto expected = floats_of(from);
  const std::size_t n_first = (n_channels - n_value_channels) * n_taps;  // those keep their order
  EXPECT_TRUE(std::equal(found.begin(), found.begin() + n_first, expected.begin()));
}

/// MLX keeps value heads grouped by key head: columns of the output projection move as blocks.
TEST(MlxFolder, ValueHeadsAreTiledAsThoseOfTransformersAre) {
  const auto checkpoint = open_mlx("qwen35");
  const auto decay = floats_of(checkpoint, "blk.0.ssm_a");
  const auto files = *formats::SafetensorsModel::open(golden_mlx_folder("qwen35"));
  const auto logs = floats_of(stored(files, "language_model.model.layers.0.linear_attn.A_log"));
  ASSERT_EQ(decay.size(), 4u);
  for (const auto& [tiled, grouped] :
       std::vector<std::pair<std::size_t, std::size_t>>{{0, 0}, {1, 2}, {2, 1}, {3, 3}}) {
    EXPECT_FLOAT_EQ(decay[tiled], -std::exp(logs[grouped]));
  }
  EXPECT_EQ(type_of(checkpoint, "blk.0.ssm_out.weight"), "AFFINE3_F32");
}

TEST(MlxFolder, BecomesAGgufFileOfTheSameWeightsOrOfF16) {
  const formats::ScratchFolder scratch;
  const auto path = scratch.file("model.gguf");
  const auto checkpoint = open_mlx("llama");
  const auto report = convert_to_gguf(checkpoint, path, std::nullopt,
                                      [](std::int64_t, std::int64_t) { return true; });
  ASSERT_TRUE(report) << report.error().message;
  const auto file = *Checkpoint::open(path);
  EXPECT_EQ(type_of(file, "blk.0.attn_q.weight"), "Q4_1");
  EXPECT_EQ(floats_of(file, "blk.0.attn_q.weight"), floats_of(checkpoint, "blk.0.attn_q.weight"));
  EXPECT_EQ(type_of(file, "output.weight"), "F16");  // six bits
  EXPECT_EQ(type_of(file, "blk.1.ffn_down.weight"), "BF16");
}

TEST(MlxFolder, BecomesF16WhereAScaleIsNoHalf) {
  const auto files = *formats::SafetensorsModel::open(golden_mlx_folder("llama"));
  const FolderCopy folder("llama", golden_mlx_folder);
  std::string text = folder.read("model.safetensors");
  const auto scale = stored(files, "model.layers.0.self_attn.v_proj.scales").offset;
  text.replace(scale, 2, std::string("\x01\x00", 2));  // the smallest BF16
  folder.write("model.safetensors", text);
  const formats::ScratchFolder scratch;
  const auto path = scratch.file("model.gguf");
  ASSERT_TRUE(convert_to_gguf(*folder.open(), path, std::nullopt,
                              [](std::int64_t, std::int64_t) { return true; }));
  const auto file = *Checkpoint::open(path);
  EXPECT_EQ(type_of(file, "blk.0.attn_v.weight"), "F16");
  EXPECT_EQ(type_of(file, "blk.0.attn_k.weight"), "Q4_1");
}

TEST(MlxFolder, KeepsFloatModesWhenItBecomesAGgufFile) {
  const formats::ScratchFolder scratch;
  const auto path = scratch.file("model.gguf");
  const auto checkpoint = open_mlx("qwen3moe-nvfp4");
  ASSERT_TRUE(convert_to_gguf(checkpoint, path, std::nullopt,
                              [](std::int64_t, std::int64_t) { return true; }));
  const auto file = *Checkpoint::open(path);
  EXPECT_EQ(type_of(file, "blk.0.attn_q.weight"), "NVFP4");
  EXPECT_EQ(floats_of(file, "blk.0.attn_q.weight"), floats_of(checkpoint, "blk.0.attn_q.weight"));
}

/// Replaces a text in the header of the weights by one of the same length.
std::string error_with(const std::string& golden, const std::string& from, const std::string& to) {
  EXPECT_EQ(from.size(), to.size());
  const FolderCopy folder(golden, golden_mlx_folder);
  folder.replace("model.safetensors", from, to);
  return folder.error();
}

TEST(HostileMlxFolder, CodesWithoutScalesOrBiasesAreRefused) {
  EXPECT_THAT(error_with("llama", "layers.0.mlp.up_proj.scales", "layers.0.mlp.up_proj.scalez"),
              AllOf(HasSubstr("model.layers.0.mlp.up_proj.weight"),
                    HasSubstr("expected scales beside it, found none")));
  EXPECT_THAT(error_with("llama", "layers.0.mlp.up_proj.biases", "layers.0.mlp.up_proj.biasez"),
              HasSubstr("expected biases beside it, found none"));
}

/// The entry of a tensor in the header, with another part of it.
std::string error_with_entry(const std::string& golden, const std::string& tensor,
                             const std::string& from, const std::string& to) {
  EXPECT_EQ(from.size(), to.size());
  const FolderCopy folder(golden, golden_mlx_folder);
  std::string text = folder.read("model.safetensors");
  const auto entry = text.find("\"" + tensor + "\"");
  EXPECT_NE(entry, std::string::npos) << tensor;
  const auto at = text.find(from, entry);
  EXPECT_LT(at, text.find('}', entry)) << from;
  folder.write("model.safetensors", text.replace(at, from.size(), to));
  return folder.error();
}

TEST(HostileMlxFolder, ScalesAndBiasesOfAnotherTypeAreRefused) {
  const std::string module = "model.layers.0.mlp.up_proj";
  EXPECT_THAT(error_with_entry("llama", module + ".scales", "\"BF16\"", " \"I16\""),
              HasSubstr(module + ".scales\": expected scales in F32, F16 or BF16, found I16"));
  EXPECT_THAT(error_with_entry("llama", module + ".biases", "\"BF16\"", " \"F16\""),
              HasSubstr(module + ".biases\": expected biases of the type and shape of the scales"));
  EXPECT_THAT(error_with_entry("qwen3-mxfp4", module + ".scales", "\"U8\"", "\"I8\""),
              HasSubstr("expected scales in U8, found I8"));
}

TEST(HostileMlxFolder, ShapesThatDoNotAgreeAreRefused) {
  const std::string module = "model.layers.0.mlp.up_proj";
  EXPECT_THAT(error_with_entry("llama", module + ".scales", "[128,1]", "[64, 2]"),
              AllOf(HasSubstr("expected codes of 4 bits in groups of 64 for scales [64, 2]"),
                    HasSubstr("found U32 [128, 8]")));
  EXPECT_THAT(error_with_entry("llama", module + ".biases", "[128,1]", "[64, 2]"),
              HasSubstr("expected biases of the type and shape of the scales"));
  EXPECT_THAT(error_with_entry("llama", module + ".weight", "[128,8]", " [1024]"),
              HasSubstr("expected a matrix of codes, found U32 [1024]"));
}

TEST(HostileMlxFolder, NumbersThatMlxDoesNotHaveAreRefused) {
  for (const char* number : {"\"bits\": 7", "\"bits\": 1", "\"bits\": 16"}) {
    const FolderCopy folder("llama", golden_mlx_folder);
    folder.replace("config.json", "\"bits\": 4", number);
    EXPECT_THAT(folder.error(), HasSubstr("expected 2, 3, 4, 5, 6 or 8 bits in groups of"));
  }
  for (const char* number : {"16", "96", "256"}) {
    const FolderCopy folder("llama", golden_mlx_folder);
    folder.replace("config.json", "\"group_size\": 64", std::string("\"group_size\": ") + number);
    EXPECT_THAT(folder.error(), HasSubstr(std::string("in groups of ") + number));
  }
  for (const char* number : {"0", "-4", "4.5", "\"4\"", "99999999999999999999"}) {
    const FolderCopy folder("llama", golden_mlx_folder);
    folder.replace("config.json", "\"bits\": 4", std::string("\"bits\": ") + number);
    EXPECT_THAT(folder.error(), AllOf(HasSubstr("config.json: quantization"), HasSubstr("bits")));
  }
}

TEST(HostileMlxFolder, APackingThatTheCodesDoNotHaveIsRefused) {
  const FolderCopy folder("llama", golden_mlx_folder);
  folder.replace("config.json", "\"bits\": 6", "\"bits\": 5");
  EXPECT_THAT(folder.error(), HasSubstr("tensor \"lm_head.weight\": expected codes of 5 bits"));
}

TEST(HostileMlxFolder, CodesThatTheConfigSaysAreNoneAreRefused) {
  const FolderCopy folder("llama", golden_mlx_folder);
  folder.replace("config.json", "\"model.layers.1.mlp.down_proj\": false",
                 "\"model.layers.0.mlp.down_proj\": false");
  EXPECT_THAT(folder.error(), HasSubstr("expected U32 only where config.json says"));
}

TEST(HostileMlxFolder, ModesThatGgufHasNoBlocksForAreNamed) {
  const FolderCopy folder("qwen3-mxfp4", golden_mlx_folder);
  folder.replace("config.json", "\"mxfp4\"", "\"mxfp8\"");
  EXPECT_THAT(folder.error(), HasSubstr("mode: expected affine, mxfp4 or nvfp4, found \"mxfp8\""));
}

TEST(HostileMlxFolder, AnOrderThatTakesBlocksApartOrCrossesRowsIsRefused) {
  const std::vector<std::byte> data(2 * 64 * 4 / 8);  // two rows of 64 codes of 4 bits
  const formats::SafetensorsTensor codes{
      .name = "x.weight", .type = formats::ElementType::u32, .shape = {2, 8}, .data = data};
  const formats::SafetensorsTensor scales{.name = "x.scales",
                                          .type = formats::ElementType::f16,
                                          .shape = {2, 1},
                                          .data = Bytes(data).first(4)};
  const auto groups = match_mlx_groups({MlxMode::affine, 4, 64}, codes, &scales, &scales);
  ASSERT_TRUE(groups) << groups.error().message;
  for (const std::int64_t run : {16, 32, 128}) {
    Gather gather{.from = "x.weight",
                  .sources = {GatherSource{.tensor = &codes, .groups = *groups}},
                  .shape = {2, 64},
                  .dtype = groups->dtype,
                  .row_length = run};
    const auto finished = finish(std::move(gather), "blk.0.x.weight", "x.safetensors");
    ASSERT_FALSE(finished) << run;
    EXPECT_THAT(finished.error().message,
                HasSubstr("expected an order of whole blocks within rows, found runs of"));
  }
}

TEST(HostileMlxFolder, AScaleOfAFloatModeThatIsNoNumberIsRefusedWhenItIsRead) {
  const std::string module = "model.layers.0.self_attn.q_proj";
  const auto files = *formats::SafetensorsModel::open(golden_mlx_folder("qwen3moe-nvfp4"));
  const FolderCopy folder("qwen3moe-nvfp4", golden_mlx_folder);
  std::string text = folder.read("model.safetensors");
  text[stored(files, module + ".scales").offset] = '\x7f';
  folder.write("model.safetensors", text);
  const auto checkpoint = folder.open();
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  const auto data = checkpoint->find("blk.0.attn_q.weight")->copy();
  ASSERT_FALSE(data);
  EXPECT_EQ(data.error().code, ErrorCode::invalid_file);
  EXPECT_THAT(data.error().message,
              HasSubstr(module + ".scales\": expected scales below 127, found 127"));
}

}  // namespace
}  // namespace hearth::model
