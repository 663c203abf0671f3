#include "model/synth/mixtures.h"

#include <algorithm>

#include "model/synth/named_rows.h"
#include "quant/all_types.h"

namespace hearth::model {
namespace {

using quant::BF16, quant::F16, quant::F32, quant::IQ4_NL, quant::IQ4_XS, quant::MXFP4, quant::NVFP4,
    quant::Q2_K, quant::Q3_K, quant::Q4_0, quant::Q4_1, quant::Q4_K, quant::Q5_0, quant::Q5_1,
    quant::Q5_K, quant::Q6_K, quant::Q8_0;

bool all(std::int64_t, std::int64_t) {
  return true;
}

template <std::int64_t n>
bool first(std::int64_t layer, std::int64_t) {
  return layer < n;
}

/// The first n-th part.
template <std::int64_t n>
bool first_part(std::int64_t layer, std::int64_t n_layers) {
  return layer < n_layers / n;
}

/// Where errors count most: the first eighth, the last eighth, and every third between.
bool more_bits(std::int64_t layer, std::int64_t n_layers) {
  const std::int64_t eighth = n_layers / 8;
  return layer < eighth || layer >= 7 * n_layers / 8 || (layer - eighth) % 3 == 2;
}

template <quant::QuantType T>
constexpr TypeRule rule(std::string_view role, LayerChoice applies) {
  return {role, applies, T::info.dtype};
}

template <quant::QuantType Base, quant::QuantType Head, class... Rules>
constexpr Mixture row(std::string_view name, std::uint32_t file_type, Rules... rules) {
  return {name, file_type, Base::info.dtype, Head::info.dtype, {rules...}};
}

constexpr std::array mixtures{
    row<F32, F32>("F32", 0),
    row<F16, F16>("F16", 1),
    row<Q4_0, Q6_K>("Q4_0", 2),
    row<Q4_1, Q6_K>("Q4_1", 3),
    row<Q8_0, Q8_0>("Q8_0", 7),
    row<Q5_0, Q6_K>("Q5_0", 8),
    row<Q5_1, Q6_K>("Q5_1", 9),
    row<Q2_K, Q6_K>("Q2_K", 10, rule<Q4_K>("attn_v", all), rule<Q3_K>("attn_output", all),
                    rule<Q3_K>("ffn_down", all)),
    row<Q3_K, Q6_K>("Q3_K_S", 11),
    row<Q3_K, Q6_K>("Q3_K_M", 12, rule<Q5_K>("attn_v", first<2>), rule<Q4_K>("attn_v", all),
                    rule<Q4_K>("attn_output", all), rule<Q5_K>("ffn_down", first_part<16>),
                    rule<Q4_K>("ffn_down", all), rule<Q4_K>("attn_qkv", all)),
    row<Q3_K, Q6_K>("Q3_K_L", 13, rule<Q5_K>("attn_v", all), rule<Q5_K>("attn_output", all),
                    rule<Q5_K>("ffn_down", all), rule<Q4_K>("attn_qkv", all)),
    row<Q4_K, Q6_K>("Q4_K_S", 14, rule<Q5_K>("attn_v", first<4>),
                    rule<Q5_K>("ffn_down", first_part<8>)),
    row<Q4_K, Q6_K>("Q4_K_M", 15, rule<Q6_K>("attn_v", more_bits),
                    rule<Q6_K>("ffn_down", more_bits), rule<Q5_K>("attn_qkv", all)),
    // Like the "dynamic" files of mixtures of experts: few bits where most weights are.
    row<Q8_0, Q8_0>("UD-Q4_K_XL", 15, rule<Q8_0>("ffn_gate_shexp", all),
                    rule<Q8_0>("ffn_up_shexp", all), rule<Q8_0>("ffn_down_shexp", all),
                    rule<Q4_K>("ffn_gate", all), rule<Q4_K>("ffn_up", all),
                    rule<Q5_K>("ffn_down", all)),
    row<Q5_K, Q6_K>("Q5_K_S", 16),
    row<Q5_K, Q6_K>("Q5_K_M", 17, rule<Q6_K>("attn_v", more_bits),
                    rule<Q6_K>("ffn_down", more_bits), rule<Q6_K>("attn_qkv", all)),
    row<Q6_K, Q6_K>("Q6_K", 18),
    row<IQ4_NL, Q6_K>("IQ4_NL", 25, rule<Q5_K>("attn_v", all),
                      rule<Q5_K>("ffn_down", first_part<8>)),
    row<IQ4_XS, Q6_K>("IQ4_XS", 30, rule<Q5_K>("attn_v", all),
                      rule<Q5_K>("ffn_down", first_part<8>)),
    row<BF16, BF16>("BF16", 32),
    // Quantizers keep these two for the experts of a layer; here they fill whole models.
    row<MXFP4, Q8_0>("MXFP4", 38),
    row<NVFP4, Q8_0>("NVFP4", 39),
};

}  // namespace

DType Mixture::layer_type(std::string_view role, std::int64_t layer, std::int64_t n_layers) const {
  const auto find_rule = [&](std::string_view wanted) {
    return std::ranges::find_if(rules, [&](const TypeRule& candidate) {
      return candidate.role == wanted && candidate.applies(layer, n_layers);
    });
  };
  auto rule = find_rule(role);
  // Without a rule of their own, the matrices of experts follow those of other models.
  for (const std::string_view suffix : {"_exps", "_shexp"}) {
    if (rule == rules.end() && role.ends_with(suffix)) {
      rule = find_rule(role.substr(0, role.size() - suffix.size()));
    }
  }
  return rule == rules.end() ? base : rule->dtype;
}

std::span<const Mixture> all_mixtures() {
  return mixtures;
}

Result<const Mixture*> find_mixture(std::string_view name) {
  return find_named(all_mixtures(), "mixture of types", name);
}

}  // namespace hearth::model
