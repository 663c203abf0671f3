#include "sampling/params.h"

#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth::sampling {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::int64_t n_vocab = 100;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

std::string refusal(const SamplingParams& params) {
  const auto result = validate(params, n_vocab);
  if (result) {
    return "accepted";
  }
  EXPECT_EQ(result.error().code, ErrorCode::invalid_argument);
  return result.error().message;
}

TEST(SamplingParams, DefaultsAreThoseOfTheOpenAiFamily) {
  const SamplingParams params;
  EXPECT_EQ(params.temperature, 0.8);
  EXPECT_EQ(params.top_k, 40);
  EXPECT_EQ(params.top_p, 0.95);
  EXPECT_EQ(params.min_p, 0.05);
  EXPECT_EQ(params.typical_p, 1.0);
  EXPECT_EQ(params.repeat_penalty, 1.0);
  EXPECT_EQ(params.repeat_last_n, 64);
  EXPECT_TRUE(validate(params, n_vocab));
}

TEST(SamplingParams, AcceptsTheEdgesOfEveryRange) {
  EXPECT_TRUE(validate({.temperature = 0}, n_vocab));
  EXPECT_TRUE(validate({.temperature = -1}, n_vocab));
  EXPECT_TRUE(validate({.temperature = 100}, n_vocab));
  EXPECT_TRUE(validate({.top_k = -1}, n_vocab));
  EXPECT_TRUE(validate({.top_p = -1}, n_vocab));
  EXPECT_TRUE(validate({.top_p = 1}, n_vocab));
  EXPECT_TRUE(validate({.min_p = 0}, n_vocab));
  EXPECT_TRUE(validate({.min_p = 1}, n_vocab));
  EXPECT_TRUE(validate({.typical_p = 1}, n_vocab));
  EXPECT_TRUE(validate({.repeat_last_n = -1}, n_vocab));
  EXPECT_TRUE(validate({.logit_bias = {{TokenId{0}, -infinity}, {TokenId{99}, 100}}}, n_vocab));
}

TEST(SamplingParams, RefusalNamesTheFieldTheRangeAndTheValue) {
  EXPECT_EQ(refusal({.top_p = 1.5}), "top_p: expected a number up to 1, found 1.5");
  EXPECT_EQ(refusal({.min_p = -0.25}), "min_p: expected a number from 0 to 1, found -0.25");
}

TEST(SamplingParams, RefusesWhatIsOutOfRange) {
  EXPECT_THAT(refusal({.temperature = 101}), HasSubstr("temperature"));
  EXPECT_THAT(refusal({.min_p = 1.1}), HasSubstr("min_p"));
  EXPECT_THAT(refusal({.min_keep = -1}), HasSubstr("min_keep"));
  EXPECT_THAT(refusal({.typical_p = 0}), HasSubstr("typical_p"));
  EXPECT_THAT(refusal({.typical_p = 1.1}), HasSubstr("typical_p"));
  EXPECT_THAT(refusal({.repeat_penalty = 0}), HasSubstr("repeat_penalty"));
  EXPECT_THAT(refusal({.repeat_penalty = -1}), HasSubstr("repeat_penalty"));
  EXPECT_THAT(refusal({.repeat_last_n = -2}), HasSubstr("repeat_last_n"));
}

TEST(SamplingParams, RefusesNumbersThatAreNotFinite) {
  for (const double bad : {nan, infinity}) {
    EXPECT_THAT(refusal({.temperature = bad}), HasSubstr("temperature"));
    EXPECT_THAT(refusal({.top_p = bad}), HasSubstr("top_p"));
    EXPECT_THAT(refusal({.min_p = bad}), HasSubstr("min_p"));
    EXPECT_THAT(refusal({.typical_p = bad}), HasSubstr("typical_p"));
    EXPECT_THAT(refusal({.repeat_penalty = bad}), HasSubstr("repeat_penalty"));
    EXPECT_THAT(refusal({.frequency_penalty = bad}), HasSubstr("frequency_penalty"));
    EXPECT_THAT(refusal({.presence_penalty = bad}), HasSubstr("presence_penalty"));
    EXPECT_THAT(refusal({.logit_bias = {{TokenId{3}, bad}}}), HasSubstr("logit_bias of token 3"));
  }
}

TEST(SamplingParams, RefusesABiasOfATokenOutsideTheVocabulary) {
  for (const int token : {-1, 100}) {
    EXPECT_THAT(
        refusal({.logit_bias = {{TokenId{token}, 1}}}),
        AllOf(HasSubstr("logit_bias"), HasSubstr("below 100"), HasSubstr(std::to_string(token))));
  }
}

}  // namespace
}  // namespace hearth::sampling
