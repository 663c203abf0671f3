#include "tokenizer/merge_rules.h"

#include <bit>
#include <string>

#include "base/fail.h"
#include "tokenizer/vocabulary_check.h"

namespace hearth::tokenizer {
namespace {

/// Reverses the order of finite floats: the larger the score, the smaller the number.
std::uint32_t descending(float score) {
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.0f);  // -0 and +0 are one score
  constexpr std::uint32_t sign = 0x80000000u;
  const std::uint32_t ascending = (bits & sign) != 0 ? ~bits : bits | sign;
  return ~ascending;
}

}  // namespace

Result<RankedMerges> RankedMerges::create(const TokenTable& tokens,
                                          std::span<const std::string_view> merges) {
  RankedMerges rules(merges.size());
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const std::string_view merge = merges[rank];
    const std::size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == merge.size()) {
      return fail(ErrorCode::invalid_file,
                  "merges[{}]: expected two parts with a space between them, found {}", rank,
                  in_quotes(merge));
    }
    const std::string_view left = merge.substr(0, space);
    const std::string_view right = merge.substr(space + 1);
    const std::string joined = std::string(left).append(right);
    const auto left_token = tokens.find(left);
    const auto right_token = tokens.find(right);
    const auto result = tokens.find(joined);
    if (!left_token || !right_token || !result) {
      const std::string_view missing = !left_token ? left : !right_token ? right : joined;
      return fail(ErrorCode::invalid_file,
                  "merges[{}]: {} needs the token {}, which does not exist", rank, in_quotes(merge),
                  in_quotes(missing));
    }
    // Plain text must not grow into a control token; published tokenizers never get here, because
    // they cut such texts out beforehand.
    if (is_plain(tokens.type(*result))) {
      rules.results_[rank] = *result;
      rules.ranks_.insert(*left_token, *right_token, static_cast<std::uint32_t>(rank));
    }
  }
  return rules;
}

ScoredMerges::ScoredMerges(std::span<const float> scores) {
  priorities_.reserve(scores.size());
  for (const float score : scores) {
    priorities_.push_back(descending(score));
  }
}

}  // namespace hearth::tokenizer
