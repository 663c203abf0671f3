/// Folders that are wrong in one place: the message says in which.

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model/huggingface/folder_copy.h"

namespace hearth::model {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(HostileFolder, AFolderWithoutAConfigIsNoModel) {
  FolderCopy folder("llama");
  folder.remove("config.json");
  const auto opened = folder.open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::not_found);
  EXPECT_THAT(opened.error().message, HasSubstr("a folder without config.json"));
}

TEST(HostileFolder, AConfigThatIsNotAJsonObjectIsRefused) {
  FolderCopy folder("llama");
  for (const char* text : {"", "[]", "7", "{", "{} {}", "\xff", R"({"a":1,"a":2})"}) {
    folder.write("config.json", text);
    EXPECT_THAT(folder.error(), HasSubstr("config.json: expected")) << text;
  }
  folder.write("config.json", std::string(100'000, '['));
  EXPECT_THAT(folder.error(), HasSubstr("expected at most 32 levels"));
  folder.write("config.json", std::string((std::size_t{4} << 20) + 1, ' '));
  EXPECT_THAT(folder.error(), HasSubstr("expected at most 4194304 bytes"));
}

TEST(HostileFolder, AnUnknownModelTypeIsRefusedWithTheKnownOnes) {
  FolderCopy folder("llama");
  for (const char* type : {"mamba", ""}) {
    folder.write("config.json", std::string(R"({"model_type":")") + type + "\"}");
    const auto opened = folder.open();
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::unsupported);
    EXPECT_THAT(opened.error().message, AllOf(HasSubstr("model_type \"" + std::string(type) + "\""),
                                              HasSubstr("known: llama, gemma3_text, qwen3")));
  }
}

TEST(HostileFolder, NumbersOfTheConfigHaveBounds) {
  struct Case {
    const char* key;
    const char* value;
  };
  for (const auto& [key, value] : std::vector<Case>{{"num_hidden_layers", "0"},
                                                    {"num_hidden_layers", "513"},
                                                    {"num_hidden_layers", "2.0"},
                                                    {"num_hidden_layers", "-1"},
                                                    {"num_hidden_layers", "18446744073709551615"},
                                                    {"num_attention_heads", "0"},
                                                    {"num_attention_heads", "\"4\""},
                                                    {"head_dim", "0"},
                                                    {"head_dim", "1000000"},
                                                    {"hidden_size", "-5"},
                                                    {"rms_norm_eps", "\"small\""},
                                                    {"rms_norm_eps", "1e300"},
                                                    {"num_key_value_heads", "{}"},
                                                    {"max_position_embeddings", "1e9"}}) {
    FolderCopy folder("llama");
    const std::string text = folder.read("config.json");
    const auto begin = text.find(std::string("\"") + key + "\":");
    ASSERT_NE(begin, std::string::npos) << key;
    folder.replace("config.json", text.substr(begin, text.find(',', begin) - begin),
                   std::string("\"") + key + "\": " + value);
    EXPECT_THAT(folder.error(), AllOf(HasSubstr("config.json: \""), HasSubstr(key)))
        << key << " " << value;
  }
}

TEST(HostileFolder, AShapeThatContradictsTheConfigIsRefused) {
  FolderCopy folder("llama");
  folder.replace("config.json", "\"num_attention_heads\": 4", "\"num_attention_heads\": 2");
  EXPECT_THAT(folder.error(), AllOf(HasSubstr("layers.0.self_attn.q_proj.weight\": expected 24"),
                                    HasSubstr("found shape [48, 32]")));
}

TEST(HostileFolder, RecurrentSizesThatContradictTheConfigAreRefused) {
  for (const char* key :
       {"linear_num_value_heads", "linear_key_head_dim", "linear_num_key_heads"}) {
    FolderCopy folder("qwen35-r2-mtp");
    const std::string text = folder.read("config.json");
    const auto begin = text.find(std::string("\"") + key + "\":");
    folder.replace("config.json", text.substr(begin, text.find(',', begin) - begin),
                   std::string("\"") + key + "\": 1");
    EXPECT_NE(folder.error(), "no error") << key;
  }
}

TEST(HostileFolder, AMissingTensorIsNamed) {
  FolderCopy folder("qwen35-r1-tied");
  folder.replace("model.safetensors", "layers.0.mlp.up_proj", "layers.9.mlp.up_proj");
  EXPECT_THAT(folder.error(), HasSubstr("tensor \"layers.0.mlp.up_proj.weight\" is missing"));
}

TEST(HostileFolder, AMissingExpertIsNamed) {
  FolderCopy folder("qwen3moe");
  folder.replace("model.safetensors", "layers.1.mlp.experts.2.up_proj",
                 "layers.1.mlp.experts.9.up_proj");
  EXPECT_THAT(folder.error(), HasSubstr("\"layers.1.mlp.experts.2.up_proj.weight\" is missing"));
}

TEST(HostileFolder, ATensorThatNoModelOfTheFamilyHasIsRefused) {
  FolderCopy folder("llama-fp8");
  folder.replace("model.safetensors", "lm_head.weight\"", "lm_hide.weight\"");
  EXPECT_THAT(folder.error(),
              HasSubstr("tensor \"lm_hide.weight\": expected a name that llama models have"));
}

TEST(HostileFolder, QuantizationsThatAreNotHandledAreNamed) {
  for (
      const auto& [config, found] : std::vector<std::pair<std::string, std::string>>{
          {R"("quantization_config":{"quant_method":"gptq","bits":4})", "quant_method \"gptq\""},
          {R"("quantization_config":{"quant_method":"awq"})", "quant_method \"awq\""},
          {R"("quantization":{"group_size":32,"bits":8,"mode":"mxfp8"})", "found \"mxfp8\""},
          {R"("quantization_config":{"quant_method":"fp8"})", "no weight_block_size"},
          {R"("quantization_config":{"quant_method":"fp8","weight_block_size":[0,128]})",
           "weight_block_size of 0"},
          {R"("quantization_config":{"quant_method":"fp8","fmt":"e5m2","weight_block_size":[1,1]})",
           "another fmt"}}) {
    FolderCopy folder("llama");
    folder.replace("config.json", "{", "{" + config + ",");
    const auto opened = folder.open();
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::unsupported);
    EXPECT_THAT(opened.error().message, AllOf(HasSubstr("quantiz"), HasSubstr(found)));
  }
}

TEST(HostileFolder, Float8WithoutItsScalesIsRefused) {
  FolderCopy folder("llama-fp8");
  folder.replace("config.json", "\"weight_block_size\": [\n   32,",
                 "\"weight_block_size\": [\n   16,");
  EXPECT_THAT(folder.error(), HasSubstr("scales for blocks of 16 x 32"));
  folder.replace("config.json", "\"quantization_config\"", "\"nothing\"");
  EXPECT_THAT(folder.error(), HasSubstr("expected FP8 with"));
}

TEST(HostileFolder, Float8ThatIsNotANumberIsRefusedWhenItIsRead) {
  FolderCopy folder("llama-fp8");
  const auto opened = folder.open();
  ASSERT_TRUE(opened) << opened.error().message;
  const auto tensor = opened->find("blk.0.ffn_down.weight")->copy();
  ASSERT_TRUE(tensor) << tensor.error().message;
  // The data of FP8 tensors stands before that of wider ones.
  std::string file = folder.read("model.safetensors");
  const std::size_t data = 8 + load<std::uint64_t>(file.data());
  for (std::size_t i = 0; i < 48 * 40; ++i) {
    file[file.size() - 1 - i] = '\x7f';
  }
  folder.write("model.safetensors", file);
  ASSERT_LT(data, file.size());
  int n_refused = 0;
  const auto changed = folder.open();
  ASSERT_TRUE(changed) << changed.error().message;
  for (const auto& changed_tensor : changed->tensors()) {
    const auto copy = changed_tensor.copy();
    if (!copy) {
      EXPECT_THAT(copy.error().message, HasSubstr("expected finite weights, found NaN"));
      ++n_refused;
    }
  }
  EXPECT_GT(n_refused, 0);
}

TEST(HostileFolder, AnUnknownSplitPatternIsPrinted) {
  FolderCopy folder("qwen3");
  folder.replace("tokenizer.json", R"(|\\p{N}|)", R"(|\\p{N}{7}|)");
  const auto opened = folder.open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::unsupported);
  EXPECT_THAT(opened.error().message,
              AllOf(HasSubstr("pre_tokenizer is not handled"), HasSubstr(R"(\\p{N}{7})")));
}

TEST(HostileFolder, StepsOfATokenizerThatAreNotHandledArePrinted) {
  struct Case {
    const char* from;
    const char* to;
    const char* expected;
  };
  for (const auto& [from, to, expected] : std::vector<Case>{
           {R"("normalizer":{"type":"NFC"})", R"("normalizer":{"type":"Lowercase"})",
            R"(normalizer is not handled: {"type":"Lowercase"})"},
           {R"("type":"BPE")", R"("type":"WordPiece")", "model type \"WordPiece\""},
           {R"("continuing_subword_prefix":null)", R"("continuing_subword_prefix":"##")",
            "continuing_subword_prefix: expected none"},
           {R"("post_processor":{"type":"ByteLevel")", R"("post_processor":{"type":"Bert")",
            "post_processor is not handled"},
           {R"("behavior":"Isolated")", R"("behavior":"Removed")", "pre_tokenizer is not handled"},
           {R"("vocab":{)", R"("vocab":{"no id":"b",)", "vocab \"no id\""}}) {
    FolderCopy folder("qwen3");
    folder.replace("tokenizer.json", from, to);
    EXPECT_THAT(folder.error(), HasSubstr(expected)) << from;
  }
}

TEST(HostileFolder, AVocabularyThatContradictsItselfIsRefused) {
  struct Case {
    const char* from;
    const char* to;
    const char* expected;
  };
  for (const auto& [from, to, expected] : std::vector<Case>{
           {R"("vocab":{"!":0,)", R"("vocab":{"!":1,)", "expected one text"},
           {R"("vocab":{"!":0,)", R"("vocab":{"!":-1,)", "expected an id of at most"},
           {R"("vocab":{"!":0,)", R"("vocab":{"!":1e9,)", "expected an id of at most"},
           {R"("vocab":{"!":0,)", R"("vocab":{"!":99999999,)", "expected an id of at most"},
           {R"("added_tokens":[{"id":316)", R"("added_tokens":[{"id":0)", "expected one text"},
           {R"("added_tokens":[{"id":316)", R"("added_tokens":[{"id":-316)",
            "expected an integer from 0"},
           {R"("merges":[)", R"("merges":[["a"],)", "expected two parts"},
           {R"("merges":[)", R"("merges":["ab",)", "expected two parts"},
           {R"("merges":[)", R"("merges":[["a b","c"],)", "expected two parts without spaces"}}) {
    FolderCopy folder("qwen3");
    folder.replace("tokenizer.json", from, to);
    EXPECT_THAT(folder.error(), HasSubstr(expected)) << to;
  }
}

TEST(HostileFolder, MergesThatSentencePieceCannotExpressAreRefused) {
  FolderCopy folder("gemma3");
  // The first merge away: a pair that makes a token, which SentencePiece would join all the same.
  const std::string text = folder.read("tokenizer.json");
  const auto begin = text.find("\"merges\":[[") + 10;
  folder.replace("tokenizer.json", text.substr(begin, text.find("],", begin) + 2 - begin), "");
  EXPECT_THAT(folder.error(), HasSubstr("expected all that a SentencePiece model implies"));
}

TEST(HostileFolder, TokensBeyondTheTableAreLeftOutWithANote) {
  FolderCopy folder("qwen35-r1-tied");
  folder.replace("tokenizer_config.json", "\"321\"", "\"5000\"");
  const auto opened = folder.open();
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_THAT(opened->notes(), testing::Contains(HasSubstr("1 added tokens beyond the 352 rows")));
}

TEST(HostileFolder, TemplatesMayComeByName) {
  FolderCopy folder("llama");
  folder.replace("tokenizer_config.json", "{",
                 R"({"chat_template":[{"name":"default","template":"D"},)"
                 R"({"name":"tool_use","template":"T"}],)");
  const auto opened = folder.open();
  ASSERT_TRUE(opened) << opened.error().message;
  const auto& metadata = opened->metadata();
  EXPECT_EQ(metadata.get<std::string_view>("tokenizer.chat_template"), "D");
  EXPECT_EQ(metadata.get<std::string_view>("tokenizer.chat_template.tool_use"), "T");
  folder.write("chat_template.jinja", "J");
  EXPECT_EQ(folder.open()->metadata().get<std::string_view>("tokenizer.chat_template"), "J");
  folder.write("chat_template.jinja", "\xff");
  EXPECT_THAT(folder.error(), HasSubstr("chat_template.jinja: expected"));
}

TEST(HostileFolder, WhatAConfigMayLeaveOutHasTheDefaultsOfItsClass) {
  FolderCopy folder("gemma3");
  folder.replace("config.json", " \"rms_norm_eps\": 1e-06,", "");
  folder.replace("config.json", " \"max_position_embeddings\": 512,", "");
  const auto opened = folder.open();
  ASSERT_TRUE(opened) << opened.error().message;
  const auto& metadata = opened->metadata();
  EXPECT_EQ(metadata.get<float>("gemma3.attention.layer_norm_rms_epsilon"), 1e-6f);
  EXPECT_EQ(metadata.get<std::uint32_t>("gemma3.context_length"), 131072u);
}

TEST(HostileFolder, AnUnknownRopeScalingIsRefused) {
  FolderCopy folder("llama");
  folder.replace("config.json", "\"rope_type\": \"llama3\"", "\"rope_type\": \"longrope\"");
  EXPECT_THAT(folder.error(), HasSubstr("rope_type: expected default, linear, llama3 or yarn"));
}

}  // namespace
}  // namespace hearth::model
