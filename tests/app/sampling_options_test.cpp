#include "sampling_options.h"

#include <algorithm>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth::app {
namespace {

using sampling::SamplingParams;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t n_vocab = 1000;

/// What a command line makes of `recommended`.
Result<SamplingParams> chosen(std::vector<std::string> arguments,
                              const SamplingParams& recommended = {}) {
  CLI::App app;
  SamplingOptions options;
  add_sampling_options(app, options);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants it
  app.parse(arguments);
  return choose_sampling(options, recommended, n_vocab);
}

TEST(SamplingOptions, GivenOptionsWinOverTheModelAndItOverTheDefaults) {
  formats::Metadata metadata;
  metadata.set("general.sampling.temp", 0.6F);
  metadata.set("general.sampling.top_k", std::int32_t{20});
  std::vector<std::string> warnings;
  const auto recommended = recommended_sampling(metadata, warnings);
  ASSERT_TRUE(recommended);
  EXPECT_THAT(warnings, IsEmpty());
  const auto params = chosen({"--top-k", "5"}, *recommended);
  ASSERT_TRUE(params);
  EXPECT_FLOAT_EQ(static_cast<float>(params->temperature), 0.6F);
  EXPECT_EQ(params->top_k, 5);
  EXPECT_EQ(params->top_p, SamplingParams().top_p);
}

TEST(SamplingOptions, EveryOptionReachesItsField) {
  const auto params = chosen({"--temperature",
                              "0.1",
                              "--top-k",
                              "2",
                              "--top-p",
                              "0.3",
                              "--min-p",
                              "0.4",
                              "--typical",
                              "0.5",
                              "--repeat-penalty",
                              "1.6",
                              "--repeat-last-n",
                              "-1",
                              "--frequency-penalty",
                              "-0.8",
                              "--presence-penalty",
                              "0.9",
                              "--seed",
                              "18446744073709551615",
                              "--logit-bias",
                              "7=-100",
                              "--logit-bias",
                              "8=1.5"});
  ASSERT_TRUE(params) << params.error().message;
  SamplingParams expected;
  expected.temperature = 0.1;
  expected.top_k = 2;
  expected.top_p = 0.3;
  expected.min_p = 0.4;
  expected.typical_p = 0.5;
  expected.repeat_penalty = 1.6;
  expected.repeat_last_n = -1;
  expected.frequency_penalty = -0.8;
  expected.presence_penalty = 0.9;
  expected.seed = ~std::uint64_t{0};
  expected.logit_bias = {{TokenId{7}, -100}, {TokenId{8}, 1.5}};
  EXPECT_EQ(*params, expected);
}

TEST(SamplingOptions, WithoutASeedEveryRunHasItsOwn) {
  EXPECT_NE(chosen({})->seed, chosen({})->seed);
}

TEST(SamplingOptions, NamesRecommendationsThatNothingImplements) {
  formats::Metadata metadata;
  metadata.set("general.sampling.mirostat", std::int32_t{2});
  std::vector<std::string> warnings;
  ASSERT_TRUE(recommended_sampling(metadata, warnings));
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("general.sampling.mirostat")));
}

TEST(SamplingOptions, RefusesARecommendationOfTheWrongType) {
  formats::Metadata metadata;
  metadata.set("general.sampling.top_k", std::string_view("many"));
  std::vector<std::string> warnings;
  EXPECT_FALSE(recommended_sampling(metadata, warnings));
}

TEST(SamplingOptions, RefusesValuesOutOfRange) {
  const auto params = chosen({"--top-p", "2"});
  ASSERT_FALSE(params);
  EXPECT_THAT(params.error().message, HasSubstr("top_p"));
}

TEST(SamplingOptions, RefusesALogitBiasThatIsNoPair) {
  for (const char* text : {"7", "7=", "=1", "x=1", "7=1x", "7 =1"}) {
    const auto params = chosen({"--logit-bias", text});
    ASSERT_FALSE(params) << text;
    EXPECT_THAT(params.error().message, HasSubstr("ID=VALUE"));
  }
  EXPECT_FALSE(chosen({"--logit-bias", "1000=1"})) << "outside the vocabulary";
}

}  // namespace
}  // namespace hearth::app
