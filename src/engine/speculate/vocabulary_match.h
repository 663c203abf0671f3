#pragma once

#include <string_view>

#include "base/result.h"
#include "tokenizer/tokenizer.h"

namespace hearth::engine {

/// A vocabulary and what to call it in a message.
struct NamedVocabulary {
  std::string_view name;
  const tokenizer::Tokenizer& tokenizer;
};

/// A draft model's tokens must be the model's own. Errors: invalid_argument, with the first
/// difference and what both have there.
Result<void> check_same_vocabulary(const NamedVocabulary& model, const NamedVocabulary& draft);

}  // namespace hearth::engine
