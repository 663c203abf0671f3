#include "model/huggingface/scored_merges.h"

#include <cstddef>
#include <map>
#include <set>
#include <string_view>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/gguf/place.h"
#include "tokenizer/vocabulary.h"

namespace hearth::model {
namespace {

using formats::in_quotes;
using TokensByText = std::map<std::string_view, FolderToken*>;

/// Tokens that merges alone make; the others are found in the text before any merge.
bool is_normal(const FolderToken& token) {
  return token.type == static_cast<std::int32_t>(tokenizer::TokenType::normal);
}

/// Every way to cut a token into two normal ones must be a merge.
Result<void> check_complete(const std::string& file, const FolderToken& token,
                            const TokensByText& by_text, const std::set<TextPair>& merges) {
  const std::string_view text = token.text;
  for (std::size_t at = decode_utf8(text).n_bytes; at < text.size();
       at += decode_utf8(text.substr(at)).n_bytes) {
    const auto left = by_text.find(text.substr(0, at));
    const auto right = by_text.find(text.substr(at));
    if (left == by_text.end() || right == by_text.end() || !is_normal(*left->second) ||
        !is_normal(*right->second)) {
      continue;
    }
    if (!merges.contains({left->second->text, right->second->text})) {
      return fail(ErrorCode::unsupported,
                  "{}: merges: expected all that a SentencePiece model implies, found none of {} "
                  "and {}",
                  file, in_quotes(left->first), in_quotes(right->first));
    }
  }
  return {};
}

}  // namespace

Result<void> score_tokens(const std::string& file, std::span<const TextPair> merges,
                          std::span<FolderToken> tokens) {
  TokensByText by_text;
  for (FolderToken& token : tokens) {
    by_text.emplace(token.text, &token);
  }
  std::set<TextPair> known;
  std::set<const FolderToken*> scored;
  const FolderToken* last = nullptr;
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const TextPair& merge = merges[rank];
    const auto made = by_text.find(merge.left + merge.right);
    if (made == by_text.end() || !by_text.contains(merge.left) || !by_text.contains(merge.right)) {
      return fail(ErrorCode::invalid_file, "{}: merges[{}]: expected parts of a token, found {} {}",
                  file, rank, in_quotes(merge.left), in_quotes(merge.right));
    }
    FolderToken& token = *made->second;
    if (scored.insert(&token).second) {
      token.score = -static_cast<float>(scored.size());
    } else if (&token != last && is_normal(token)) {
      return fail(ErrorCode::unsupported,
                  "{}: merges[{}]: expected the merges that make {} one after the other", file,
                  rank, in_quotes(token.text));
    }
    last = &token;
    known.insert(merge);
  }
  for (const FolderToken& token : tokens) {
    if (is_normal(token)) {
      HEARTH_TRY(check_complete(file, token, by_text, known));
    }
  }
  return {};
}

}  // namespace hearth::model
