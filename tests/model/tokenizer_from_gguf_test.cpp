#include "model/tokenizer_from_gguf.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth::model {
namespace {

using formats::Metadata;
using testing::ElementsAre;
using testing::HasSubstr;

/// The keys of a SentencePiece vocabulary of five tokens.
Metadata small_metadata() {
  Metadata metadata("small.gguf");
  metadata.set("tokenizer.ggml.model", std::string_view("llama"));
  metadata.set_array("tokenizer.ggml.tokens",
                     std::vector<std::string>{"<unk>", "<s>", "</s>", "\u2581", "\u2581a"});
  metadata.set_array<float>("tokenizer.ggml.scores", std::vector<float>{0, 0, 0, 0, 1});
  metadata.set_array<std::int32_t>("tokenizer.ggml.token_type",
                                   std::vector<std::int32_t>{2, 3, 3, 1, 1});
  return metadata;
}

Error error_with(const std::function<void(Metadata&)>& change) {
  Metadata metadata = small_metadata();
  change(metadata);
  const auto tokenizer = tokenizer_from_gguf(metadata);
  return tokenizer ? Error{ErrorCode::internal, "no error"} : tokenizer.error();
}

TEST(TokenizerFromGguf, ReadsRolesFlagsAndLists) {
  Metadata metadata = small_metadata();
  metadata.set("tokenizer.ggml.bos_token_id", std::uint32_t{2});
  metadata.set("tokenizer.ggml.seperator_token_id", std::uint32_t{1});
  metadata.set("tokenizer.ggml.add_bos_token", false);
  metadata.set("tokenizer.ggml.add_eos_token", true);
  metadata.set("tokenizer.ggml.add_space_prefix", false);
  metadata.set_array<std::int32_t>("tokenizer.ggml.suppress_tokens",
                                   std::vector<std::int32_t>{4, 0});
  const auto tokenizer = tokenizer_from_gguf(metadata);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->n_tokens(), 5u);
  EXPECT_EQ(tokenizer->special().bos, TokenId{2});
  EXPECT_EQ(tokenizer->special().separator, TokenId{1});
  EXPECT_EQ(tokenizer->special().unknown, TokenId{0});
  EXPECT_FALSE(tokenizer->adds_bos());
  EXPECT_TRUE(tokenizer->adds_eos());
  EXPECT_FALSE(tokenizer->adds_space_prefix());
  EXPECT_THAT(tokenizer->suppressed(), ElementsAre(TokenId{4}, TokenId{0}));
  EXPECT_EQ(tokenizer->type(TokenId{1}), tokenizer::TokenType::control);
}

TEST(TokenizerFromGguf, AMissingKeyIsAnErrorThatNamesIt) {
  const auto tokenizer = tokenizer_from_gguf(Metadata("empty.gguf"));
  ASSERT_FALSE(tokenizer);
  EXPECT_EQ(tokenizer.error().code, ErrorCode::not_found);
  EXPECT_THAT(tokenizer.error().message, HasSubstr("tokenizer.ggml.model"));
}

TEST(TokenizerFromGguf, AnUnknownKindIsAnErrorThatListsTheKnownOnes) {
  const Error error =
      error_with([](Metadata& m) { m.set("tokenizer.ggml.model", std::string_view("rwkv")); });
  EXPECT_EQ(error.code, ErrorCode::unsupported);
  EXPECT_THAT(error.message, HasSubstr("small.gguf"));
  EXPECT_THAT(error.message, HasSubstr("\"rwkv\""));
  EXPECT_THAT(error.message, HasSubstr("gpt2, gemma4, llama, t5"));
}

TEST(TokenizerFromGguf, ErrorsOfTheVocabularyNameTheFile) {
  const Error error = error_with([](Metadata& m) {
    m.set_array("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b", "c", "a", "d"});
  });
  EXPECT_EQ(error.code, ErrorCode::invalid_file);
  EXPECT_THAT(error.message, HasSubstr("small.gguf: tokenizer: tokens[0] and tokens[3]"));
}

// The hostile files of docs/formats/gguf.md whose defects lie in the vocabulary, by number.

TEST(TokenizerFromGgufHostile, Idea08ListsOfOtherElementTypesAreConvertedOrRefused) {
  const std::vector<std::uint8_t> bytes{2, 3, 3, 1, 1};
  EXPECT_EQ(error_with([&](Metadata& m) {
              m.set_array<std::uint8_t>("tokenizer.ggml.scores", bytes);
            }).code,
            ErrorCode::invalid_file);
  EXPECT_EQ(error_with([&](Metadata& m) {
              m.set_array("tokenizer.ggml.suppress_tokens", std::vector<std::string>{"a"});
            }).code,
            ErrorCode::invalid_file);
  Metadata narrow = small_metadata();
  narrow.set_array<std::uint8_t>("tokenizer.ggml.token_type", bytes);
  EXPECT_EQ(tokenizer_from_gguf(narrow).value().type(TokenId{1}), tokenizer::TokenType::control);
}

TEST(TokenizerFromGgufHostile, Idea13AShortCharsmapIsRefused) {
  const Error error = error_with([](Metadata& m) {
    m.set("tokenizer.ggml.model", std::string_view("t5"));
    m.set_array<std::int8_t>("tokenizer.ggml.precompiled_charsmap",
                             std::vector<std::int8_t>{1, 2, 3});
  });
  EXPECT_EQ(error.code, ErrorCode::invalid_file);
  EXPECT_THAT(error.message, HasSubstr("precompiled_charsmap: 3 bytes"));
}

TEST(TokenizerFromGgufHostile, Idea18SpecialTokensOutsideTheVocabularyAreRefused) {
  const Error error = error_with(
      [](Metadata& m) { m.set("tokenizer.ggml.eos_token_id", std::uint32_t{0xffffffff}); });
  EXPECT_EQ(error.code, ErrorCode::invalid_file);
  EXPECT_THAT(error.message, HasSubstr("eos_token_id: 4294967295 is outside"));
}

TEST(TokenizerFromGgufHostile, Idea19AVocabularySizeWithoutTokensIsRefused) {
  Metadata metadata("small.gguf");
  metadata.set("tokenizer.ggml.model", std::string_view("llama"));
  metadata.set("llama.vocab_size", std::uint32_t{0xffffffff});
  EXPECT_EQ(tokenizer_from_gguf(metadata).error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace hearth::model
