#include "sampling/softmax.h"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace hearth::sampling {
namespace {

TEST(Softmax, GivesTheBitsOfTheCanonicalExponential) {
  std::vector<float> logits(3000);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>(i) * -0.0371f + 9.0f;
  }
  std::vector<float> weights = logits;
  const Softmax distribution = softmax_in_place(weights, 9.0f);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    EXPECT_EQ(distribution.weights[i], canonical_exp(logits[i] - 9.0f)) << "logit " << logits[i];
    EXPECT_EQ(distribution.weights[i], distribution.weight(logits[i]));
  }
  EXPECT_EQ(distribution.total, std::accumulate(weights.begin(), weights.end(), 0.0));
}

TEST(Softmax, ReportsTheLogarithmOfAProbability) {
  std::vector<float> logits{std::log(6.0f), std::log(3.0f), std::log(1.0f)};
  const Softmax distribution = softmax_in_place(logits, std::log(6.0f));
  EXPECT_NEAR(distribution.log_probability(std::log(3.0f)), std::log(0.3), 1e-6);
}

}  // namespace
}  // namespace hearth::sampling
