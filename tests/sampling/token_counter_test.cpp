#include "sampling/token_counter.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth::sampling {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(TokenCounter, CountsEachDistinctToken) {
  TokenCounter counter(10);
  counter.count(std::vector{TokenId{3}, TokenId{7}, TokenId{3}, TokenId{3}});
  EXPECT_THAT(counter.distinct(), ElementsAre(TokenId{3}, TokenId{7}));
  EXPECT_EQ(counter.occurrences(TokenId{3}), 3);
  EXPECT_EQ(counter.occurrences(TokenId{7}), 1);
}

TEST(TokenCounter, ForgetsTheSpanBefore) {
  TokenCounter counter(10);
  counter.count(std::vector{TokenId{3}, TokenId{7}});
  counter.count(std::vector{TokenId{7}});
  EXPECT_THAT(counter.distinct(), ElementsAre(TokenId{7}));
  EXPECT_EQ(counter.occurrences(TokenId{7}), 1);
}

TEST(TokenCounter, LeavesOutIdsOutsideTheVocabulary) {
  TokenCounter counter(10);
  counter.count(std::vector{TokenId{-1}, TokenId{10}});
  EXPECT_THAT(counter.distinct(), IsEmpty());
}

}  // namespace
}  // namespace hearth::sampling
