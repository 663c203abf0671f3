#include "sampling/largest_logit.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace hearth::sampling {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

TEST(LargestLogit, IsTheFirstOfEqualOnesWhereverTheyLie) {
  for (const std::size_t n : {1u, 15u, 16u, 1024u, 1025u, 5000u}) {
    for (const std::size_t first : {std::size_t{0}, n / 2, n - 1}) {
      std::vector<float> logits(n, -3.0f);
      logits[first] = 2.0f;
      logits.back() = 2.0f;
      const LargestLogit found = largest_logit(logits);
      EXPECT_TRUE(found.are_numbers);
      EXPECT_EQ(found.logit, 2.0f);
      EXPECT_EQ(found.index, first) << n;
    }
  }
}

TEST(LargestLogit, TakesZeroesOfBothSignsForEqual) {
  std::vector<float> logits(40, -1.0f);
  logits[7] = -0.0f;
  logits[30] = 0.0f;
  EXPECT_EQ(largest_logit(logits).index, 7u);
}

TEST(LargestLogit, FindsWhatIsNoNumberWhereverItLies) {
  for (const float wrong : {infinity, std::numeric_limits<float>::quiet_NaN()}) {
    for (const std::size_t at : {0u, 1023u, 1024u, 2059u}) {
      std::vector<float> logits(2060, 1.0f);
      logits[at] = wrong;
      EXPECT_FALSE(largest_logit(logits).are_numbers) << at;
    }
  }
}

TEST(LargestLogit, LetsBansPass) {
  std::vector<float> logits(100, -infinity);
  EXPECT_TRUE(largest_logit(logits).are_numbers);
  EXPECT_EQ(largest_logit(logits).logit, -infinity);
  logits[60] = -1e30f;
  EXPECT_EQ(largest_logit(logits).index, 60u);
}

}  // namespace
}  // namespace hearth::sampling
