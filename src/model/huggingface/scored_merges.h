#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/huggingface/tokenizer_file.h"

namespace hearth::model {

/// Two neighbours that merge.
struct TextPair {
  std::string left;
  std::string right;

  auto operator<=>(const TextPair&) const = default;
};

/// Turns ranked merges into the scores of SentencePiece, which joins any two neighbours whose text
/// is a token, the highest score first. Both do the same when the list is complete: every pair
/// that makes a normal token is in it, and the pairs of one token stand together. Lists that were
/// made from a SentencePiece model are.
/// Errors: unsupported when the list is not complete, naming a pair; invalid_file for a merge of
/// which a part or the whole is no token. `file` is the name that messages start with.
Result<void> score_tokens(const std::string& file, std::span<const TextPair> merges,
                          std::span<FolderToken> tokens);

}  // namespace hearth::model
