#include "sampling_options.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>

#include "base/fail.h"
#include "sampling/random.h"
#include "seed_option.h"

namespace hearth::app {
namespace {

using sampling::SamplingParams;

constexpr std::string_view metadata_prefix = "general.sampling.";

template <class T>
bool parse_number(std::string_view text, T& value) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  return result.ec == std::errc() && result.ptr == text.data() + text.size();
}

Result<sampling::TokenBias> parse_bias(std::string_view text) {
  const auto equals = text.find('=');
  std::int32_t token = 0;
  double bias = 0;
  if (equals == std::string_view::npos || !parse_number(text.substr(0, equals), token) ||
      !parse_number(text.substr(equals + 1), bias)) {
    return fail(ErrorCode::invalid_argument,
                "--logit-bias: expected ID=VALUE with a token id and a number, found '{}'", text);
  }
  return sampling::TokenBias{TokenId{token}, bias};
}

bool is_known_recommendation(std::string_view name) {
  return std::any_of(sampling_settings.begin(), sampling_settings.end(), [&](const auto& setting) {
    return setting.metadata_name != nullptr && setting.metadata_name == name;
  });
}

template <class T>
Result<void> read_recommendation(const formats::Metadata& metadata, const char* name, T& value) {
  HEARTH_ASSIGN(const auto found, metadata.find<T>(std::string(metadata_prefix) + name));
  value = found.value_or(value);
  return {};
}

}  // namespace

void add_sampling_options(CLI::App& app, SamplingOptions& options) {
  for (std::size_t i = 0; i < sampling_settings.size(); ++i) {
    const auto& setting = sampling_settings[i];
    options.options[i] = std::visit(
        [&](auto field) {
          return app.add_option(setting.option, options.values.*field, setting.help);
        },
        setting.field);
  }
  app.add_option("--logit-bias", options.logit_bias,
                 "ID=VALUE: added to the logit of one token; may be repeated")
      ->allow_extra_args(false);
  const auto seed = options.seed ? format("{}", *options.seed) : "a random one";
  app.add_option("--seed", options.seed, format("Same seed, same answer (default: {})", seed))
      ->check(check_seed);
}

Result<SamplingParams> recommended_sampling(const formats::Metadata& metadata,
                                            std::vector<std::string>& warnings) {
  SamplingParams params;
  for (const auto& setting : sampling_settings) {
    if (setting.metadata_name != nullptr) {
      HEARTH_TRY(std::visit(
          [&](auto field) {
            return read_recommendation(metadata, setting.metadata_name, params.*field);
          },
          setting.field));
    }
  }
  for (const auto& entry : metadata.entries()) {
    if (entry.key.starts_with(metadata_prefix) &&
        !is_known_recommendation(entry.key.substr(metadata_prefix.size()))) {
      warnings.push_back(format("the model recommends {}, which is not implemented",
                                formats::in_quotes(entry.key)));
    }
  }
  return params;
}

Result<SamplingParams> choose_sampling(const SamplingOptions& options, SamplingParams recommended,
                                       std::int64_t n_vocab) {
  SamplingParams params = std::move(recommended);
  for (std::size_t i = 0; i < sampling_settings.size(); ++i) {
    if (options.options[i] != nullptr && options.options[i]->count() > 0) {
      std::visit([&](auto field) { params.*field = options.values.*field; },
                 sampling_settings[i].field);
    }
  }
  for (const auto& text : options.logit_bias) {
    HEARTH_ASSIGN(const auto bias, parse_bias(text));
    params.logit_bias.push_back(bias);
  }
  params.seed = options.seed ? *options.seed : sampling::random_seed();
  HEARTH_TRY(sampling::validate(params, n_vocab));
  return params;
}

}  // namespace hearth::app
