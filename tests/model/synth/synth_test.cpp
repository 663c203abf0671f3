#include "model/synth/synth.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/model.h"
#include "model/synth/synth_tensor.h"
#include "quant/registry.h"
#include "tests/formats/gguf/scratch_folder.h"
#include "tokenizer/detokenizer.h"

namespace hearth::model {
namespace {

using formats::ScratchFolder;
using testing::HasSubstr;

bool go_on(std::int64_t, std::int64_t) {
  return true;
}

const ModelShape& shape(std::string_view name) {
  return **find_model_shape(name);
}

/// A model of the smallest shape.
std::filesystem::path write_tiny(const ScratchFolder& folder, std::string_view mixture,
                                 std::uint64_t seed = 0) {
  auto path = folder.file(std::string(mixture) + std::to_string(seed) + ".gguf");
  const auto written =
      write_synthetic_model(path, shape("llama-tiny"), **find_mixture(mixture), seed, go_on);
  EXPECT_TRUE(written) << written.error().message;
  return path;
}

std::unique_ptr<const Model> open(const std::filesystem::path& path) {
  auto model = Model::open(path);
  EXPECT_TRUE(model) << model.error().message;
  return std::move(*model);
}

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(SyntheticModel, OpensWithTheShapeThatWasAskedForInEveryMixture) {
  for (const auto& mixture : all_mixtures()) {
    const ScratchFolder folder;
    const auto model = open(write_tiny(folder, mixture.name));
    EXPECT_EQ(model->params(), shape("llama-tiny").params) << mixture.name;
    EXPECT_TRUE(model->warnings().empty()) << mixture.name;
    EXPECT_EQ(*model->checkpoint().metadata().get<std::uint32_t>("general.file_type"),
              mixture.file_type);
  }
}

TEST(SyntheticModel, HybridModelsOpenWithAllTheirParts) {
  for (const char* name : {"qwen3.5-tiny", "qwen3.5-tiny-moe"}) {
    const ScratchFolder folder;
    const auto path = folder.file("hybrid.gguf");
    ASSERT_TRUE(write_synthetic_model(path, shape(name), **find_mixture("Q4_K_M"), 0, go_on));
    const auto model = open(path);
    EXPECT_EQ(model->kv_layers().size(), 1u) << name;
    EXPECT_EQ(model->state_layers().size(), 3u) << name;
    EXPECT_NE(model->mtp(), nullptr) << name;
    EXPECT_TRUE(model->warnings().empty()) << name << ": " << model->warnings().front();
  }
}

TEST(SyntheticModel, ExpertsHaveTheTypesOfTheMixture) {
  const ScratchFolder folder;
  const auto path = folder.file("experts.gguf");
  const auto type_in = [&](std::string_view mixture, std::string_view tensor) {
    EXPECT_TRUE(
        write_synthetic_model(path, shape("qwen3.5-tiny-moe"), **find_mixture(mixture), 0, go_on));
    return quant::name(open(path)->checkpoint().find(tensor)->dtype);
  };
  EXPECT_EQ(type_in("Q4_K_M", "blk.0.attn_qkv.weight"), "Q5_K");
  EXPECT_EQ(type_in("Q4_K_M", "blk.0.ffn_gate_inp.weight"), "F32");
  EXPECT_EQ(type_in("Q4_K_M", "blk.2.ffn_down_exps.weight"), "Q6_K");
  EXPECT_EQ(type_in("Q4_K_M", "blk.2.ffn_up_exps.weight"), "Q4_K");
  EXPECT_EQ(type_in("UD-Q4_K_XL", "blk.2.ffn_up_exps.weight"), "Q4_K");
  EXPECT_EQ(type_in("UD-Q4_K_XL", "blk.2.ffn_up_shexp.weight"), "Q8_0");
  EXPECT_EQ(type_in("UD-Q4_K_XL", "blk.2.attn_gate.weight"), "Q8_0");
}

TEST(SyntheticModel, TensorsHaveTheTypesOfTheMixture) {
  const ScratchFolder folder;
  const auto model = open(write_tiny(folder, "Q4_K_M"));
  const auto type = [&](std::string_view tensor) {
    return quant::name(model->checkpoint().find(tensor)->dtype);
  };
  EXPECT_EQ(type("token_embd.weight"), "Q4_K");
  EXPECT_EQ(type("output.weight"), "Q6_K");
  EXPECT_EQ(type("output_norm.weight"), "F32");
  EXPECT_EQ(type("blk.0.attn_norm.weight"), "F32");
  EXPECT_EQ(type("blk.0.attn_v.weight"), "Q6_K");
  EXPECT_EQ(type("blk.1.attn_v.weight"), "Q4_K");
  EXPECT_EQ(type("blk.3.ffn_down.weight"), "Q6_K");
  EXPECT_EQ(type("blk.3.ffn_up.weight"), "Q4_K");
}

TEST(SyntheticModel, ATiedEmbeddingTableHasTheTypeOfTheHead) {
  const ScratchFolder folder;
  ModelShape tied = shape("llama-tiny");
  tied.is_tied = true;
  const auto path = folder.file("tied.gguf");
  ASSERT_TRUE(write_synthetic_model(path, tied, **find_mixture("q4_0"), 0, go_on));  // in any case
  const auto model = open(path);
  EXPECT_EQ(quant::name(model->checkpoint().find("token_embd.weight")->dtype), "Q6_K");
  EXPECT_EQ(model->checkpoint().find("output.weight"), nullptr);
}

TEST(SyntheticModel, ItsBytesAreAFunctionOfTheSeed) {
  const ScratchFolder folder;
  const auto bytes = bytes_of(write_tiny(folder, "Q4_0", 1));
  EXPECT_EQ(bytes, bytes_of(write_tiny(folder, "Q4_0", 1)));
  EXPECT_NE(bytes, bytes_of(write_tiny(folder, "Q4_0", 2)));
}

TEST(SyntheticModel, NoTwoTensorsAreEqual) {
  const ScratchFolder folder;
  const auto model = open(write_tiny(folder, "Q8_0"));
  const auto data = [&](std::string_view tensor) {
    return model->checkpoint().find(tensor)->mapped;
  };
  const auto gate = data("blk.0.ffn_gate.weight");
  for (const char* other : {"blk.0.ffn_up.weight", "blk.1.ffn_gate.weight"}) {
    EXPECT_FALSE(std::equal(gate.begin(), gate.end(), data(other).begin())) << other;
  }
}

TEST(SyntheticModel, ItsTokenizerSpellsEveryText) {
  const ScratchFolder folder;
  const auto model = open(write_tiny(folder, "Q4_0"));
  const auto& tokenizer = model->tokenizer();
  EXPECT_EQ(tokenizer.n_tokens(), 2048u);
  for (const std::string text : {"the river", "Grüße, 世界 \U0001f600\n", "\x01\x7f 42"}) {
    const auto tokens = tokenizer.encode(text);
    ASSERT_TRUE(tokens) << tokens.error().message;
    EXPECT_EQ(tokenizer::detokenize(tokenizer, *tokens), text);
  }
  EXPECT_EQ(tokenizer.encode(" river and the").value().size(), 6u) << "merges make longer tokens";
}

TEST(SyntheticModel, ItsTemplateOpensATurnForTheAssistant) {
  const ScratchFolder folder;
  const auto model = open(write_tiny(folder, "Q4_0"));
  ASSERT_TRUE(model->chat_template());
  EXPECT_THAT(*model->chat_template(), HasSubstr("<|im_start|>assistant"));
}

TEST(SyntheticModel, ProgressEndsAtTheReportedBytesAndCanStopTheWriting) {
  const ScratchFolder folder;
  std::int64_t last = 0;
  const auto& tiny = shape("llama-tiny");
  const auto& mixture = **find_mixture("Q4_0");
  const auto report = write_synthetic_model(folder.file("whole.gguf"), tiny, mixture, 0,
                                            [&](std::int64_t done, std::int64_t total) {
                                              EXPECT_LT(last, done);
                                              EXPECT_LE(done, total);
                                              last = done;
                                              return true;
                                            });
  ASSERT_TRUE(report);
  EXPECT_EQ(report->weight_bytes, last);
  const auto stopped =
      write_synthetic_model(folder.file("part.gguf"), tiny, mixture, 0,
                            [](std::int64_t done, std::int64_t total) { return done < total / 2; });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::cancelled);
  EXPECT_EQ(folder.n_files(), 1u) << "no partial file is left behind";
}

TEST(SyntheticModel, APlaceThatCannotBeWrittenIsNamed) {
  const ScratchFolder folder;
  const auto written = write_synthetic_model(folder.file("no/such/folder.gguf"),
                                             shape("llama-tiny"), **find_mixture("Q4_0"), 0, go_on);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::io);
  EXPECT_THAT(written.error().message, HasSubstr("no/such/folder.gguf"));
}

TEST(ModelShapes, HaveAboutTheWeightsOfTheirNames) {
  const auto billions = [](std::string_view name) {
    const auto& s = shape(name);
    const auto& p = s.params;
    const auto attention = 2 * p.embed * (p.n_heads + p.n_kv_heads) * p.head_dim;
    const auto layer = attention + 3 * p.embed * p.ffn;
    return static_cast<double>(p.n_layers * layer + (s.is_tied ? 1 : 2) * p.vocab * p.embed) / 1e9;
  };
  EXPECT_NEAR(billions("llama-1b"), 1.24, 0.01);  // Llama 3.2 1B
  EXPECT_NEAR(billions("llama-4b"), 4.02, 0.01);  // Qwen3 4B
  EXPECT_NEAR(billions("llama-8b"), 8.03, 0.01);  // Llama 3.1 8B
}

/// The totals of the published checkpoints, without vision.
TEST(ModelShapes, HybridOnesHaveTheParametersOfThePublishedModels) {
  const auto weights = [](std::string_view name) {
    std::int64_t n = 0;
    for (const auto& tensor : qwen_hybrid_synth().tensors(shape(name))) {
      n += tensor.shape.elements();
    }
    return n;
  };
  EXPECT_EQ(weights("qwen3.5-0.8b"), 752'393'024 + 20'452'864);
  EXPECT_EQ(weights("qwen3.5-2b"), 1'881'825'088 + 60'828'160);
  EXPECT_EQ(weights("qwen3.5-4b"), 4'205'751'296 + 120'599'552);
  EXPECT_EQ(weights("qwen3.5-9b"), 8'953'803'264 + 243'290'624);
  EXPECT_EQ(weights("qwen3.5-27b"), 26'895'998'464 + 424'699'392);
  EXPECT_EQ(weights("qwen3.5-35b-a3b"), 34'660'610'688 + 844'640'768);
  EXPECT_EQ(weights("qwen3.5-122b-a10b"), 122'111'526'912 + 2'523'679'232);
  EXPECT_EQ(weights("qwen3.5-397b-a17b"), 396'346'350'336 + 6'595'568'128);
}

TEST(ModelShapes, AnUnknownNameIsAnErrorWithTheKnownOnes) {
  const auto unknown = find_model_shape("llama-9b");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::not_found);
  EXPECT_THAT(unknown.error().message, HasSubstr("'llama-9b'"));
  EXPECT_THAT(unknown.error().message, HasSubstr("llama-tiny, llama-1b, llama-4b, llama-8b"));
}

}  // namespace
}  // namespace hearth::model
