/// Hugging Face folders against what an independent script makes of them.

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/gguf/reader.h"
#include "model/checkpoint.h"
#include "model/convert.h"
#include "model/tokenizer_from_gguf.h"
#include "tests/formats/gguf/scratch_folder.h"
#include "tests/model/golden_model.h"
#include "tests/model/huggingface/describe_checkpoint.h"
#include "tests/model/huggingface/folder_copy.h"
#include "tests/tokenizer/text_list.h"

namespace hearth::model {
namespace {

using ::testing::Contains;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class GoldenFolder : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto opened = Checkpoint::open(folder());
    ASSERT_TRUE(opened) << opened.error().message;
    checkpoint_.emplace(std::move(*opened));
  }

  [[nodiscard]] static std::filesystem::path folder() { return golden_folder(GetParam()); }
  [[nodiscard]] static std::vector<std::string> expected() {
    return split_terminated(read_file(folder() / "expected.txt"), "\n");
  }

  std::optional<Checkpoint> checkpoint_;
};

TEST_P(GoldenFolder, HasTheKeysAndTensorsOfTheGgufFileThatItBecomes) {
  EXPECT_THAT(describe(*checkpoint_), ElementsAreArray(expected()));
}

TEST_P(GoldenFolder, BecomesAGgufFileWithTheSameKeysAndTensors) {
  const formats::ScratchFolder scratch;
  const auto path = scratch.file("model.gguf");
  const auto report = convert_to_gguf(*checkpoint_, path, std::nullopt,
                                      [](std::int64_t, std::int64_t) { return true; });
  ASSERT_TRUE(report) << report.error().message;
  const auto file = Checkpoint::open(path);
  ASSERT_TRUE(file) << file.error().message;
  auto lines = expected();
  lines.emplace_back("key general.file_type u32 32");
  std::ranges::sort(lines);
  EXPECT_THAT(describe(*file), ElementsAreArray(lines));
  EXPECT_EQ(report->n_tensors, file->tensors().size());
}

TEST_P(GoldenFolder, HasATokenizerWithARowOfTheTableForEachToken) {
  const auto tokenizer = tokenizer_from_gguf(checkpoint_->metadata());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(static_cast<std::int64_t>(tokenizer->n_tokens()),
            checkpoint_->find("token_embd.weight")->shape[0]);
}

/// Checks every text of `inp` against the line of the folder's file `golden` with the same number.
void expect_ids(const tokenizer::Tokenizer& tokenizer, const std::filesystem::path& inp,
                const std::filesystem::path& golden) {
  const auto texts = read_texts(std::filesystem::path(HEARTH_TESTS_DIR) / "golden" / inp);
  const auto ids = read_numbers(golden);
  ASSERT_EQ(texts.size(), ids.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const TextPart part{.text = texts[i], .trusted = true};
    const auto tokens = tokenizer.encode({&part, 1});
    ASSERT_TRUE(tokens) << tokens.error().message;
    std::vector<std::int32_t> found;
    for (const TokenId token : *tokens) {
      found.push_back(static_cast<std::int32_t>(token));
    }
    EXPECT_EQ(found, ids[i]) << "text " << i << ": " << texts[i];
  }
}

TEST_P(GoldenFolder, GivesTheIdsOfTheTokenizersLibrary) {
  if (!std::filesystem::exists(folder() / "tokens.golden")) {
    return;  // the tokenizer of another folder
  }
  const auto tokenizer = tokenizer_from_gguf(checkpoint_->metadata());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  expect_ids(*tokenizer, "tokenizers/texts.inp", folder() / "tokens.golden");
  expect_ids(*tokenizer, "huggingface/decomposed.inp", folder() / "decomposed.golden");
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, GoldenFolder, testing::ValuesIn(golden_folder_names()), test_name);

Checkpoint open_golden(const std::string& name) {
  return *Checkpoint::open(golden_folder(name));
}

TEST(HuggingFaceFolder, LeavesTensorsInTheFileWhereNothingChanges) {
  const auto checkpoint = open_golden("llama");
  EXPECT_FALSE(checkpoint.find("token_embd.weight")->make);
  EXPECT_FALSE(checkpoint.find("blk.1.ffn_down.weight")->make);
  EXPECT_TRUE(checkpoint.find("blk.1.attn_q.weight")->make);  // its rows are in another order
  EXPECT_EQ(checkpoint.n_shards(), 2u);
}

TEST(HuggingFaceFolder, FusedExpertsStayInTheFileForRunning) {
  const auto checkpoint =
      Checkpoint::open(golden_folder("qwen35moe-fused-mtp"), ExpertLayout::stored);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  const auto* experts = checkpoint->find("blk.0.ffn_gate_up_exps.weight");
  ASSERT_NE(experts, nullptr);
  EXPECT_FALSE(experts->make);
  EXPECT_EQ(experts->shape, (Shape{4, 32, 32}));
  EXPECT_FALSE(checkpoint->find("blk.0.ffn_down_exps.weight")->make);
  EXPECT_EQ(checkpoint->find("blk.0.ffn_gate_exps.weight"), nullptr);
  // Those of the head come one by one.
  EXPECT_TRUE(checkpoint->find("blk.2.ffn_gate_exps.weight")->make);
}

TEST(HuggingFaceFolder, SaysWhatIsLeftOutAndWidened) {
  EXPECT_THAT(open_golden("qwen35-r1-tied").notes(), Contains(HasSubstr("vision")));
  EXPECT_THAT(open_golden("llama-fp8").notes(), Contains(HasSubstr("FP8 tensors are widened")));
  EXPECT_THAT(open_golden("llama").notes(), IsEmpty());
}

TEST(HuggingFaceFolder, SaysHowItNormalizesWhereThePreTokenizerDoesNotImplyIt) {
  const std::string key = "tokenizer.ggml.normalizer.nfc";
  EXPECT_EQ(open_golden("qwen3").metadata().find<bool>(key).value(), std::nullopt);
  EXPECT_EQ(open_golden("llama").metadata().find<bool>(key).value(), std::nullopt);

  FolderCopy without("qwen3");
  without.replace("tokenizer.json", R"({"type":"NFC"})", "null");
  EXPECT_EQ(without.open()->metadata().find<bool>(key).value(), false);
  FolderCopy with("llama");
  with.replace("tokenizer.json", R"("normalizer":null)", R"("normalizer":{"type":"NFC"})");
  EXPECT_EQ(with.open()->metadata().find<bool>(key).value(), true);
}

TEST(HuggingFaceFolder, StopsAtEveryEndOfTheFolder) {
  for (const auto& [folder, texts] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"gemma3", {"<eos>", "<end_of_turn>"}},
           {"llama", {"<|end_of_text|>", "<|eot_id|>"}},
           {"qwen35-r1-tied", {"<|im_end|>", "<|endoftext|>"}}}) {
    const auto checkpoint = open_golden(folder);
    const auto tokenizer = tokenizer_from_gguf(checkpoint.metadata());
    ASSERT_TRUE(tokenizer) << tokenizer.error().message;
    for (const auto& text : texts) {
      const auto token = tokenizer->find(text);
      ASSERT_TRUE(token) << text;
      EXPECT_TRUE(tokenizer->is_end_of_generation(*token)) << text;
    }
  }
}

TEST(HuggingFaceFolder, ThinkingMarksAreShownAndTurnMarksAreNot) {
  const auto checkpoint = open_golden("qwen35-r1-tied");
  const auto tokenizer = tokenizer_from_gguf(checkpoint.metadata());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->type(*tokenizer->find("<think>")), tokenizer::TokenType::user_defined);
  EXPECT_EQ(tokenizer->type(*tokenizer->find("<|im_start|>")), tokenizer::TokenType::control);
  EXPECT_EQ(tokenizer->type(*tokenizer->find("[PAD351]")), tokenizer::TokenType::unused);
}

}  // namespace
}  // namespace hearth::model
