#include "tokenizer/vocabulary_check.h"

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/fail.h"
#include "base/utf8.h"

namespace hearth::tokenizer {
namespace {

// Several times what real vocabularies have. An index over them stays small next to the file that
// holds so many.
constexpr std::size_t max_tokens = std::size_t{1} << 20;
constexpr std::size_t max_merges = std::size_t{1} << 21;

Result<void> check_texts(const Vocabulary& vocabulary) {
  const std::size_t n_tokens = vocabulary.tokens.size();
  if (n_tokens == 0) {
    return fail(ErrorCode::invalid_file, "tokens: the list is empty");
  }
  if (n_tokens > max_tokens) {
    return fail(ErrorCode::invalid_file, "tokens: {} entries, at most {} are supported", n_tokens,
                max_tokens);
  }
  if (vocabulary.merges.size() > max_merges) {
    return fail(ErrorCode::invalid_file, "merges: {} entries, at most {} are supported",
                vocabulary.merges.size(), max_merges);
  }
  for (std::size_t i = 0; i < n_tokens; ++i) {
    if (vocabulary.tokens[i].size() > max_token_bytes) {
      return fail(ErrorCode::invalid_file, "tokens[{}]: a text of {} bytes, at most {} are allowed",
                  i, vocabulary.tokens[i].size(), max_token_bytes);
    }
  }
  return {};
}

Result<void> check_scores(const Vocabulary& vocabulary) {
  const bool needed = vocabulary.kind == VocabularyKind::sentence_piece ||
                      vocabulary.kind == VocabularyKind::unigram;
  const std::size_t n_scores = vocabulary.scores.size();
  if ((needed || n_scores != 0) && n_scores != vocabulary.tokens.size()) {
    return fail(ErrorCode::invalid_file, "scores: {} entries for {} tokens", n_scores,
                vocabulary.tokens.size());
  }
  for (std::size_t i = 0; i < n_scores; ++i) {
    if (!std::isfinite(vocabulary.scores[i])) {
      return fail(ErrorCode::invalid_file, "scores[{}]: {} is not a finite number", i,
                  vocabulary.scores[i]);
    }
  }
  return {};
}

Result<void> check_types(const Vocabulary& vocabulary) {
  const std::size_t n_types = vocabulary.types.size();
  if (n_types != 0 && n_types != vocabulary.tokens.size()) {
    return fail(ErrorCode::invalid_file, "token_type: {} entries for {} tokens", n_types,
                vocabulary.tokens.size());
  }
  for (std::size_t i = 0; i < n_types; ++i) {
    if (vocabulary.types[i] < 0 ||
        vocabulary.types[i] > static_cast<std::int32_t>(TokenType::byte)) {
      return fail(ErrorCode::invalid_file, "token_type[{}]: expected 0 to 6, found {}", i,
                  vocabulary.types[i]);
    }
  }
  return {};
}

bool is_in_range(std::int32_t id, std::size_t n_tokens) {
  return id >= 0 && static_cast<std::size_t>(id) < n_tokens;
}

Result<void> check_ids(const Vocabulary& vocabulary) {
  const std::size_t n_tokens = vocabulary.tokens.size();
  for (const SpecialTokenRole& role : special_token_roles) {
    const std::optional<TokenId>& id = vocabulary.special.*role.id;
    if (id && !is_in_range(static_cast<std::int32_t>(*id), n_tokens)) {
      return fail(ErrorCode::invalid_file, "{}_token_id: {} is outside the vocabulary of {} tokens",
                  role.name, static_cast<std::uint32_t>(*id), n_tokens);
    }
  }
  for (std::size_t i = 0; i < vocabulary.suppressed.size(); ++i) {
    if (!is_in_range(vocabulary.suppressed[i], n_tokens)) {
      return fail(ErrorCode::invalid_file,
                  "suppress_tokens[{}]: {} is outside the vocabulary of {} tokens", i,
                  vocabulary.suppressed[i], n_tokens);
    }
  }
  return {};
}

}  // namespace

Result<void> check_lists(const Vocabulary& vocabulary) {
  HEARTH_TRY(check_texts(vocabulary));
  HEARTH_TRY(check_scores(vocabulary));
  HEARTH_TRY(check_types(vocabulary));
  return check_ids(vocabulary);
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 48;
  const bool is_cut = text.size() > longest;
  std::string shown = "\"";
  for (std::string_view rest = text.substr(0, longest); !rest.empty();) {
    const Utf8Character character = decode_utf8(rest);
    const auto code_point = static_cast<std::uint32_t>(character.code_point);
    if (code_point < 0x20 || (code_point >= 0x7f && code_point < 0xa0)) {
      shown += format("\\x{:02x}", code_point);
    } else {
      append_utf8(shown, character.code_point);
    }
    rest.remove_prefix(character.n_bytes);
  }
  return shown + (is_cut ? "\"..." : "\"");
}

}  // namespace hearth::tokenizer
