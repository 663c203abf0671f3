#pragma once
/// How `hearth run` chooses tokens: options of the command line over the model's own
/// recommendations over the defaults of SamplingParams.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "formats/gguf/metadata.h"
#include "sampling/params.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace hearth::app {

/// A number of SamplingParams with the names it has outside.
struct SamplingSetting {
  using Field =
      std::variant<double sampling::SamplingParams::*, std::int64_t sampling::SamplingParams::*>;

  const char* option;
  const char* metadata_name;  // below general.sampling; nullptr: files have no such key
  Field field;
  const char* help;
};

inline constexpr std::array sampling_settings{
    SamplingSetting{"--temperature", "temp", &sampling::SamplingParams::temperature,
                    "Spread of the choice; 0: always the most likely token"},
    SamplingSetting{"--top-k", "top_k", &sampling::SamplingParams::top_k,
                    "Choose among so many tokens; 0: all"},
    SamplingSetting{"--top-p", "top_p", &sampling::SamplingParams::top_p,
                    "Choose among the likeliest that sum to this probability; 1: all"},
    SamplingSetting{"--min-p", "min_p", &sampling::SamplingParams::min_p,
                    "Drop tokens below this fraction of the likeliest; 0: none"},
    SamplingSetting{"--typical", nullptr, &sampling::SamplingParams::typical_p,
                    "Locally typical sampling; 1: off"},
    SamplingSetting{"--repeat-penalty", "penalty_repeat", &sampling::SamplingParams::repeat_penalty,
                    "Divide the logits of recent tokens; 1: off"},
    SamplingSetting{"--repeat-last-n", "penalty_last_n", &sampling::SamplingParams::repeat_last_n,
                    "Tokens that penalties look back; -1: all"},
    SamplingSetting{"--frequency-penalty", nullptr, &sampling::SamplingParams::frequency_penalty,
                    "Subtract this for each occurrence; 0: off"},
    SamplingSetting{"--presence-penalty", nullptr, &sampling::SamplingParams::presence_penalty,
                    "Subtract this from tokens that occurred; 0: off"},
};

/// What the parser fills in; it must outlive the parser.
struct SamplingOptions {
  sampling::SamplingParams values;  // valid where the option was given
  std::array<const CLI::Option*, sampling_settings.size()> options{};
  std::vector<std::string> logit_bias;  // "ID=VALUE"
  std::optional<std::uint64_t> seed;
};

/// A seed that `options` has is the default.
void add_sampling_options(CLI::App& app, SamplingOptions& options);

/// The model's recommendations (keys general.sampling.*) over the defaults. Recommendations that
/// nothing here implements are named in `warnings`. Errors: invalid_file for a value of the wrong
/// type.
Result<sampling::SamplingParams> recommended_sampling(const formats::Metadata& metadata,
                                                      std::vector<std::string>& warnings);

/// `recommended` with the given options on top, checked. Without --seed, a random one.
/// Errors: invalid_argument naming the option or the field.
Result<sampling::SamplingParams> choose_sampling(const SamplingOptions& options,
                                                 sampling::SamplingParams recommended,
                                                 std::int64_t n_vocab);

}  // namespace hearth::app
