#include "tokenizer/detokenizer.h"

#include <string_view>

#include "base/assert.h"
#include "base/utf8.h"

namespace hearth::tokenizer {

Detokenizer::Detokenizer(const Tokenizer& tokenizer, DetokenizerOptions options)
    : tokenizer_(&tokenizer),
      options_(options),
      drops_space_(options.at_text_start && tokenizer.adds_space_prefix()) {}

std::string Detokenizer::push(TokenId token) {
  HEARTH_ASSERT(tokenizer_->contains(token));
  const bool is_control = tokenizer_->is_control(token);
  if (is_control && !options_.show_control) {
    return {};
  }
  std::string_view bytes = tokenizer_->token_bytes(token);
  if (drops_space_ && !bytes.empty() && !is_control) {
    drops_space_ = false;
    if (bytes.front() == ' ') {
      bytes.remove_prefix(1);
    }
  }
  held_back_.append(bytes);
  const std::size_t n_complete = held_back_.size() - incomplete_utf8_tail(held_back_);
  std::string text = replace_invalid_utf8(std::string_view(held_back_).substr(0, n_complete));
  held_back_.erase(0, n_complete);
  return text;
}

std::string Detokenizer::flush() {
  std::string text = replace_invalid_utf8(held_back_);
  held_back_.clear();
  return text;
}

std::string detokenize(const Tokenizer& tokenizer, std::span<const TokenId> tokens,
                       DetokenizerOptions options) {
  Detokenizer detokenizer(tokenizer, options);
  std::string text;
  for (const TokenId token : tokens) {
    text += detokenizer.push(token);
  }
  return text + detokenizer.flush();
}

}  // namespace hearth::tokenizer
