#include "model/synth/mixtures.h"

#include <set>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quant/registry.h"

namespace hearth::model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

DType type(std::string_view name) {
  return quant::find(name)->dtype;
}

/// The layers, of `n_layers`, in which `mixture` stores `role` as `dtype`.
std::vector<std::int64_t> layers_with(std::string_view mixture, std::string_view role,
                                      std::string_view dtype, std::int64_t n_layers) {
  std::vector<std::int64_t> layers;
  for (std::int64_t layer = 0; layer < n_layers; ++layer) {
    if ((*find_mixture(mixture))->layer_type(role, layer, n_layers) == type(dtype)) {
      layers.push_back(layer);
    }
  }
  return layers;
}

TEST(Mixtures, GiveMoreBitsToTheFirstAndLastEighthAndEveryThirdLayerBetween) {
  for (const char* role : {"attn_v", "ffn_down"}) {
    EXPECT_THAT(layers_with("Q4_K_M", role, "Q6_K", 16), ElementsAre(0, 1, 4, 7, 10, 13, 14, 15));
    EXPECT_THAT(layers_with("Q5_K_M", role, "Q6_K", 8), ElementsAre(0, 3, 6, 7));
  }
}

TEST(Mixtures, Q4_K_MHasAsManyTensorsOfEachTypeAsPublishedFiles) {
  // Q4_K_M files of Llama 3.1 8B, with 32 layers of 7 matrices: 33 Q6_K and 193 Q4_K, among them
  // output.weight and token_embd.weight.
  std::size_t n_q6 = 1;
  std::size_t n_q4 = 1;
  for (const char* role :
       {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"}) {
    n_q6 += layers_with("Q4_K_M", role, "Q6_K", 32).size();
    n_q4 += layers_with("Q4_K_M", role, "Q4_K", 32).size();
  }
  EXPECT_EQ(n_q6, 33u);
  EXPECT_EQ(n_q4, 193u);
}

TEST(Mixtures, TheFirstRuleThatFitsCounts) {
  EXPECT_THAT(layers_with("Q3_K_M", "attn_v", "Q5_K", 32), ElementsAre(0, 1));
  EXPECT_THAT(layers_with("Q3_K_M", "ffn_down", "Q5_K", 32), ElementsAre(0, 1));
  EXPECT_EQ(layers_with("Q3_K_M", "ffn_down", "Q4_K", 32).size(), 30u);
  EXPECT_EQ(layers_with("Q3_K_M", "attn_q", "Q3_K", 32).size(), 32u);
}

TEST(Mixtures, HaveDistinctNamesAndFileTypes) {
  std::set<std::string_view> names;
  std::set<std::uint32_t> file_types;
  for (const auto& mixture : all_mixtures()) {
    EXPECT_TRUE(names.insert(mixture.name).second) << mixture.name;
    // Dynamic files have the number of the type that they start from.
    EXPECT_TRUE(mixture.name.starts_with("UD-") || file_types.insert(mixture.file_type).second)
        << mixture.name;
  }
}

TEST(Mixtures, AnUnknownNameIsAnErrorWithTheKnownOnes) {
  const auto unknown = find_mixture("Q4_K_XXL");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::not_found);
  EXPECT_THAT(unknown.error().message, HasSubstr("'Q4_K_XXL'"));
  EXPECT_THAT(unknown.error().message, HasSubstr("Q4_K_S, Q4_K_M"));
}

}  // namespace
}  // namespace hearth::model
