/// The small parts of reading a folder, each by itself.

#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/huggingface/float8.h"
#include "model/huggingface/row_orders.h"
#include "model/huggingface/scored_merges.h"
#include "tokenizer/vocabulary.h"

namespace hearth::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::int64_t> first_rows(const RowOrder& order, std::int64_t n) {
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < n; ++row) {
    rows.push_back(order(row));
  }
  return rows;
}

TEST(RowOrders, PairsOfHalvesBecomeNeighbours) {
  EXPECT_THAT(first_rows(neighbouring_pairs(6), 12),
              ElementsAre(0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11));
}

TEST(RowOrders, ValueHeadsAreTiledByKeyHead) {
  // Two key heads with three value heads each: 0, 1, 2 belong to the first.
  EXPECT_THAT(first_rows(tiled_value_heads(2, 3, 1, 0), 6), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(first_rows(tiled_value_heads(2, 2, 2, 3), 11),
              ElementsAre(0, 1, 2, 3, 4, 7, 8, 5, 6, 9, 10));
}

TEST(RowOrders, HalvesOfExpertsAreTakenExpertByExpert) {
  EXPECT_THAT(first_rows(part_of_each(4, 2, 2), 6), ElementsAre(2, 3, 6, 7, 10, 11));
}

TEST(RowOrders, FusedProjectionsAreTakenApart) {
  // Per key head: q, k, then two of v and two of z.
  const KeyHeadGroups groups{.n_key_heads = 2, .key_dim = 1, .value_dim = 2};
  EXPECT_THAT(first_rows(qkv_of_groups(groups), 8), ElementsAre(0, 6, 1, 7, 2, 3, 8, 9));
  EXPECT_THAT(first_rows(z_of_groups(groups), 4), ElementsAre(4, 5, 10, 11));
}

TEST(Float8, KnowsItsLandmarks) {
  const auto value = [](int bits) { return to_double({static_cast<std::uint8_t>(bits)}); };
  EXPECT_EQ(value(0x00), 0);
  EXPECT_EQ(value(0x01), 0x1p-9);
  EXPECT_EQ(value(0x07), 7 * 0x1p-9);
  EXPECT_EQ(value(0x08), 0x1p-6);
  EXPECT_EQ(value(0x38), 1);
  EXPECT_EQ(value(0x7e), 448);
  EXPECT_EQ(value(0xfe), -448);
  EXPECT_TRUE(is_nan({0x7f}));
  EXPECT_TRUE(is_nan({0xff}));
  EXPECT_FALSE(is_nan({0x7e}));
}

TEST(Float8, RoundsToBfloat16Once) {
  EXPECT_EQ(round_to_bfloat16(1.0).bits, 0x3f80);
  EXPECT_EQ(round_to_bfloat16(-2.5).bits, 0xc020);
  // Just above the middle of 1 and its successor: f32 rounds it to the middle, which would then
  // round down to even.
  EXPECT_EQ(round_to_bfloat16(1.0 + 0x1p-8 + 0x1p-40).bits, 0x3f81);
  EXPECT_EQ(round_to_bfloat16(1.0 + 0x1p-8).bits, 0x3f80);
  EXPECT_EQ(round_to_bfloat16(1.0 + 0x1p-8 - 0x1p-40).bits, 0x3f80);
  EXPECT_EQ(round_to_bfloat16(1.0 + 0x1.8p-7 - 0x1p-40).bits, 0x3f81);
  EXPECT_EQ(round_to_bfloat16(0).bits, 0);
}

FolderToken normal(const char* text) {
  return {.text = text, .type = static_cast<std::int32_t>(tokenizer::TokenType::normal)};
}

TEST(ScoredMerges, EarlierTokensScoreHigher) {
  std::vector<FolderToken> tokens{normal("a"),  normal("b"),   normal("c"),
                                  normal("ab"), normal("abc"), normal("bc")};
  const std::vector<TextPair> merges{{"b", "c"}, {"a", "b"}, {"ab", "c"}, {"a", "bc"}};
  const auto scored = score_tokens("tokenizer.json", merges, tokens);
  ASSERT_TRUE(scored) << scored.error().message;
  EXPECT_EQ(tokens[5].score, -1);  // bc
  EXPECT_EQ(tokens[3].score, -2);  // ab
  EXPECT_EQ(tokens[4].score, -3);  // abc
  EXPECT_EQ(tokens[0].score, 0);
}

TEST(ScoredMerges, AListThatLeavesAPairOutIsRefused) {
  std::vector<FolderToken> tokens{normal("a"), normal("b"), normal("ab"), normal("abb")};
  const std::vector<TextPair> merges{{"a", "b"}};
  const auto scored = score_tokens("tokenizer.json", merges, tokens);
  ASSERT_FALSE(scored);
  EXPECT_EQ(scored.error().code, ErrorCode::unsupported);
  EXPECT_THAT(scored.error().message, HasSubstr("found none of \"ab\" and \"b\""));
}

TEST(ScoredMerges, AMergeOfUnknownPartsIsRefused) {
  std::vector<FolderToken> tokens{normal("a"), normal("b"), normal("ab")};
  const std::vector<TextPair> merges{{"a", "b"}, {"a", "x"}};
  const auto scored = score_tokens("tokenizer.json", merges, tokens);
  ASSERT_FALSE(scored);
  EXPECT_THAT(scored.error().message, HasSubstr("merges[1]: expected parts of a token"));
}

}  // namespace
}  // namespace hearth::model
