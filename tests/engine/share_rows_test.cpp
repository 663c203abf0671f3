#include "engine/schedule/share_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth::engine {
namespace {

using testing::ElementsAre;

TEST(ShareRows, ALongPromptNeverStallsThoseThatDecode) {
  EXPECT_THAT(share_rows(std::vector<std::int64_t>{10000, 1, 1}, 64), ElementsAre(62, 1, 1));
}

TEST(ShareRows, PromptsAreReadInOrderOfArrival) {
  EXPECT_THAT(share_rows(std::vector<std::int64_t>{40, 40, 40}, 64), ElementsAre(40, 23, 1));
}

TEST(ShareRows, NobodyGetsMoreThanIsPending) {
  EXPECT_THAT(share_rows(std::vector<std::int64_t>{3, 0, 2}, 64), ElementsAre(3, 0, 2));
}

TEST(ShareRows, TooFewRowsGoToTheFirst) {
  EXPECT_THAT(share_rows(std::vector<std::int64_t>{5, 5, 5}, 2), ElementsAre(1, 1, 0));
}

}  // namespace
}  // namespace hearth::engine
