#include "sampling/params.h"

#include <array>
#include <limits>
#include <string_view>

#include "base/fail.h"

namespace hearth::sampling {
namespace {

constexpr double lowest = std::numeric_limits<double>::lowest();
constexpr double above_zero = 1e-9;
constexpr double widest_penalty = 1e6;  // keeps every edited logit finite

struct Range {
  std::string_view name;
  double value;
  double low;
  double high;
};

Result<void> check(const Range& range) {
  if (range.value >= range.low && range.value <= range.high) {  // false for NaN
    return {};
  }
  if (range.low == lowest) {
    return fail(ErrorCode::invalid_argument, "{}: expected a number up to {:g}, found {}",
                range.name, range.high, range.value);
  }
  return fail(ErrorCode::invalid_argument, "{}: expected a number from {:g} to {:g}, found {}",
              range.name, range.low, range.high, range.value);
}

Result<void> check(const TokenBias& entry, std::int64_t n_vocab) {
  const auto token = static_cast<std::int64_t>(entry.token);
  if (token < 0 || token >= n_vocab) {
    return fail(ErrorCode::invalid_argument,
                "logit_bias: expected a token below {} (the size of the vocabulary), found {}",
                n_vocab, token);
  }
  if (!(entry.bias <= widest_penalty)) {
    return fail(ErrorCode::invalid_argument,
                "logit_bias of token {}: expected a number up to {:g}, found {}", token,
                widest_penalty, entry.bias);
  }
  return {};
}

}  // namespace

Result<void> validate(const SamplingParams& params, std::int64_t n_vocab) {
  const std::array ranges{
      Range{"temperature", params.temperature, lowest, 100.0},
      Range{"top_p", params.top_p, lowest, 1.0},
      Range{"min_p", params.min_p, 0.0, 1.0},
      Range{"typical_p", params.typical_p, above_zero, 1.0},
      Range{"repeat_penalty", params.repeat_penalty, 1.0 / widest_penalty, widest_penalty},
      Range{"frequency_penalty", params.frequency_penalty, -widest_penalty, widest_penalty},
      Range{"presence_penalty", params.presence_penalty, -widest_penalty, widest_penalty},
  };
  for (const Range& range : ranges) {
    HEARTH_TRY(check(range));
  }
  if (params.repeat_last_n < -1) {
    return fail(ErrorCode::invalid_argument,
                "repeat_last_n: expected -1 (the whole history) or more, found {}",
                params.repeat_last_n);
  }
  if (params.min_keep < 0) {
    return fail(ErrorCode::invalid_argument, "min_keep: expected 0 or more, found {}",
                params.min_keep);
  }
  for (const TokenBias& entry : params.logit_bias) {
    HEARTH_TRY(check(entry, n_vocab));
  }
  return {};
}

}  // namespace hearth::sampling
