#include "engine/speculate/vocabulary_match.h"

#include <algorithm>

#include "base/fail.h"

namespace hearth::engine {

Result<void> check_same_vocabulary(const NamedVocabulary& model, const NamedVocabulary& draft) {
  const auto& expected = model.tokenizer;
  const auto& found = draft.tokenizer;
  const std::size_t n_common = std::min(expected.n_tokens(), found.n_tokens());
  for (std::size_t i = 0; i < n_common; ++i) {
    const auto token = static_cast<TokenId>(i);
    if (expected.token_text(token) != found.token_text(token)) {
      return fail(ErrorCode::invalid_argument,
                  "{} cannot draft for {}: token {} is '{}', expected '{}'", draft.name, model.name,
                  i, found.token_text(token), expected.token_text(token));
    }
    if (expected.is_control(token) != found.is_control(token)) {
      return fail(ErrorCode::invalid_argument,
                  "{} cannot draft for {}: token {} ('{}') is a control token in one of them only",
                  draft.name, model.name, i, expected.token_text(token));
    }
  }
  if (expected.n_tokens() != found.n_tokens()) {
    return fail(ErrorCode::invalid_argument,
                "{} cannot draft for {}: it has {} tokens, expected {}", draft.name, model.name,
                found.n_tokens(), expected.n_tokens());
  }
  return {};
}

}  // namespace hearth::engine
