#include "tokenizer/unigram_encoder.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "tokenizer/byte_fallback.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/merge_chain.h"
#include "tokenizer/prefix_index.h"
#include "tokenizer/visible_spaces.h"
#include "tokenizer/vocabulary_check.h"

namespace hearth::tokenizer {
namespace {

constexpr std::size_t max_unigram_bytes = 512;    // bounds the work per character
constexpr double unknown_character_penalty = 10;  // below the lowest score, as in SentencePiece

/// Runs of spaces become one; none is left at the beginning.
std::string collapse_spaces(std::string_view text) {
  std::string collapsed;
  for (const char c : text) {
    if (c != ' ' || (!collapsed.empty() && collapsed.back() != ' ')) {
      collapsed.push_back(c);
    }
  }
  return collapsed;
}

struct Options {
  bool add_space_prefix;
  bool remove_extra_whitespaces;
};

class UnigramEncoder : public TextEncoder {
 public:
  UnigramEncoder(Charsmap charsmap, PrefixIndex tokens, std::vector<float> scores,
                 ByteFallback fallback, Options options)
      : charsmap_(std::move(charsmap)),
        tokens_(std::move(tokens)),
        scores_(std::move(scores)),
        fallback_(fallback),
        options_(options),
        unknown_score_(*std::ranges::min_element(scores_) - unknown_character_penalty) {}

  Result<void> encode(std::string_view text, std::vector<TokenId>& tokens) const override {
    const std::string normalized = normalize(text);
    return append_path(normalized, best_steps(normalized), tokens);
  }

 private:
  /// The last step of the best segmentation of the text up to some byte.
  struct Step {
    double score = -std::numeric_limits<double>::infinity();
    TokenId token = no_token;  // no_token for an unknown character
    std::uint32_t length = 0;  // bytes
  };

  std::string normalize(std::string_view text) const {
    std::string normalized = replace_invalid_utf8(charsmap_.normalize(text));
    if (options_.remove_extra_whitespaces) {
      normalized = collapse_spaces(normalized);
    }
    if (normalized.empty()) {
      return normalized;
    }
    std::string shown = show_spaces(normalized);
    if (options_.add_space_prefix) {
      shown.insert(0, visible_space);
    }
    while (options_.remove_extra_whitespaces && shown.ends_with(visible_space)) {
      shown.resize(shown.size() - visible_space.size());
    }
    return shown;
  }

  /// steps[i] ends at byte i.
  std::vector<Step> best_steps(std::string_view text) const {
    std::vector<Step> steps(text.size() + 1);
    steps[0].score = 0;
    for (std::size_t begin = 0; begin < text.size();) {
      const double before = steps[begin].score;
      const std::size_t n_bytes = decode_utf8(text.substr(begin)).n_bytes;
      const auto take = [&](TokenId token, std::size_t length, double score) {
        Step& step = steps[begin + length];
        if (before + score > step.score) {
          step = {before + score, token, static_cast<std::uint32_t>(length)};
        }
      };
      bool is_known = false;
      tokens_.for_each_prefix(text.substr(begin), [&](const PrefixIndex::Entry& entry) {
        is_known = is_known || entry.text.size() == n_bytes;
        take(entry.token, entry.text.size(), scores_[static_cast<std::size_t>(entry.token)]);
      });
      if (!is_known) {
        take(no_token, n_bytes, unknown_score_);
      }
      begin += n_bytes;
    }
    return steps;
  }

  /// Follows the steps from the end and appends their tokens; neighbouring unknown characters are
  /// one unknown text.
  Result<void> append_path(std::string_view text, const std::vector<Step>& steps,
                           std::vector<TokenId>& tokens) const {
    std::vector<Step> path;  // from the end
    for (std::size_t end = text.size(); end > 0;) {
      const Step& step = steps[end];
      end -= step.length;
      if (step.token == no_token && !path.empty() && path.back().token == no_token) {
        path.back().length += step.length;
      } else {
        path.push_back(step);
      }
    }
    std::size_t begin = 0;
    for (auto step = path.rbegin(); step != path.rend(); ++step) {
      if (step->token != no_token) {
        tokens.push_back(step->token);
      } else {
        HEARTH_TRY(fallback_.encode(text.substr(begin, step->length), tokens));
      }
      begin += step->length;
    }
    return {};
  }

  Charsmap charsmap_;
  PrefixIndex tokens_;
  std::vector<float> scores_;  // by token
  ByteFallback fallback_;
  Options options_;
  double unknown_score_;
};

}  // namespace

Result<std::unique_ptr<TextEncoder>> make_unigram_encoder(const Vocabulary& vocabulary,
                                                          const TokenTable& tokens,
                                                          std::optional<TokenId> unknown,
                                                          bool add_space_prefix) {
  HEARTH_ASSIGN(Charsmap charsmap, Charsmap::parse(vocabulary.precompiled_charsmap));
  std::vector<PrefixIndex::Entry> entries;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const TokenId token = tokens.id(i);
    const std::string_view text = tokens.text(token);
    if (!is_plain(tokens.type(token)) || text.empty()) {
      continue;
    }
    if (text.size() > max_unigram_bytes) {
      return fail(ErrorCode::invalid_file,
                  "tokens[{}]: {} has {} bytes, at most {} are allowed in a unigram vocabulary", i,
                  in_quotes(text), text.size(), max_unigram_bytes);
    }
    entries.push_back({text, token});
  }
  const Options options{
      .add_space_prefix = add_space_prefix,
      .remove_extra_whitespaces = vocabulary.remove_extra_whitespaces.value_or(false)};
  return std::make_unique<UnigramEncoder>(std::move(charsmap), PrefixIndex(std::move(entries)),
                                          vocabulary.scores, ByteFallback(tokens, unknown),
                                          options);
}

}  // namespace hearth::tokenizer
