#include "model/tokenizer_from_gguf.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/gguf/reader.h"
#include "tokenizer/detokenizer.h"

namespace hearth::model {
namespace {

using tokenizer::Tokenizer;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

std::vector<std::string> split(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  for (std::size_t found = text.find(separator); found != std::string_view::npos;
       found = text.find(separator)) {
    parts.emplace_back(text.substr(0, found));
    text.remove_prefix(found + separator.size());
  }
  parts.emplace_back(text);
  return parts;
}

std::vector<TokenId> parse_ids(const std::string& line) {
  std::vector<TokenId> ids;
  std::istringstream stream(line);
  for (std::int32_t id = 0; stream >> id;) {
    ids.push_back(TokenId{id});
  }
  return ids;
}

class VocabularyOracle : public testing::TestWithParam<std::string_view> {};

// The expected ids were made by the Hugging Face tokenizers.
TEST_P(VocabularyOracle, GivesTheIdsOfThePublishedTokenizer) {
  const std::filesystem::path model =
      std::filesystem::path(HEARTH_SHARED_DATA_DIR) / "vocab" /
      (std::string("ggml-vocab-").append(GetParam()).append(".gguf"));
  if (!std::filesystem::exists(model)) {
    GTEST_SKIP() << model << " is not there";
  }
  const auto file = formats::GgufFile::open(model);
  ASSERT_TRUE(file) << file.error().message;
  const auto tokenizer = tokenizer_from_gguf(file->metadata());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;

  const auto texts = split(read_file(model.string() + ".inp"), "\n__ggml_vocab_test__\n");
  const auto lines = split(read_file(model.string() + ".out"), "\n");
  ASSERT_EQ(texts.size(), lines.size());
  ASSERT_GE(texts.size(), 46u);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto tokens = tokenizer->encode(texts[i]);
    ASSERT_TRUE(tokens) << tokens.error().message;
    EXPECT_EQ(*tokens, parse_ids(lines[i])) << "text " << i << ": " << texts[i];
    EXPECT_EQ(tokenizer::detokenize(*tokenizer, *tokens), texts[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(All, VocabularyOracle,
                         testing::Values("deepseek-coder", "deepseek-llm", "falcon", "gpt-2",
                                         "llama-spm", "mpt", "phi-3", "refact", "starcoder"));

}  // namespace
}  // namespace hearth::model
