/// Token ids against those of the tokenizers that models were trained with.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "formats/gguf/reader.h"
#include "model/tokenizer_from_gguf.h"
#include "tests/tokenizer/text_list.h"
#include "tokenizer/detokenizer.h"

namespace hearth::model {
namespace {

using tokenizer::Tokenizer;

Result<Tokenizer> load(const std::filesystem::path& path) {
  HEARTH_ASSIGN(const formats::GgufFile file, formats::GgufFile::open(path));
  return tokenizer_from_gguf(file.metadata());
}

/// Checks every text of `inp` against the line of `out` with the same number.
void expect_ids(const Tokenizer& tokenizer, bool trusted, const std::filesystem::path& inp,
                const std::filesystem::path& out) {
  const std::vector<std::string> texts = read_texts(inp);
  const std::vector<std::vector<std::int32_t>> expected = read_numbers(out);
  ASSERT_EQ(texts.size(), expected.size());
  ASSERT_GE(texts.size(), 46u);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const TextPart part{.text = texts[i], .trusted = trusted};
    const auto tokens = tokenizer.encode({&part, 1});
    ASSERT_TRUE(tokens) << tokens.error().message;
    std::vector<std::int32_t> ids;
    for (const TokenId token : *tokens) {
      ids.push_back(static_cast<std::int32_t>(token));
    }
    EXPECT_EQ(ids, expected[i]) << "text " << i << ": " << texts[i];
  }
}

class PublicVocabulary : public testing::TestWithParam<std::string_view> {};

TEST_P(PublicVocabulary, GivesTheIdsOfThePublishedTokenizer) {
  const std::string model = std::string(HEARTH_SHARED_DATA_DIR) + "/vocab/ggml-vocab-" +
                            std::string(GetParam()) + ".gguf";
  if (!std::filesystem::exists(model)) {
    GTEST_SKIP() << model << " is not there";
  }
  const auto tokenizer = load(model);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  expect_ids(*tokenizer, false, model + ".inp", model + ".out");
  for (const std::string& text : read_texts(model + ".inp")) {
    EXPECT_EQ(detokenize(*tokenizer, tokenizer->encode(text).value()), text);
  }
}

INSTANTIATE_TEST_SUITE_P(All, PublicVocabulary,
                         testing::Values("deepseek-coder", "deepseek-llm", "falcon", "gpt-2",
                                         "llama-spm", "mpt", "phi-3", "refact", "starcoder"));

class SmallVocabulary : public testing::TestWithParam<std::string_view> {
 protected:
  static std::string path(std::string_view suffix) {
    return std::string(HEARTH_TESTS_DIR) + "/golden/tokenizers/" + std::string(suffix);
  }
};

TEST_P(SmallVocabulary, GivesTheIdsOfTheLibraryThatMadeIt) {
  const std::string model = std::string(GetParam()) + ".gguf";
  const auto tokenizer = load(path(model));
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  expect_ids(*tokenizer, false, path("texts.inp"), path(model + ".user.out"));
  if (std::filesystem::exists(path(model + ".out"))) {
    expect_ids(*tokenizer, true, path("texts.inp"), path(model + ".out"));
  }
}

INSTANTIATE_TEST_SUITE_P(All, SmallVocabulary,
                         testing::Values("byte_pair", "visible_spaces", "sentence_piece",
                                         "unigram"));

}  // namespace
}  // namespace hearth::model
