#include "tokenizer/visible_spaces.h"

#include <algorithm>

namespace hearth::tokenizer {
namespace {

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string replaced;
  replaced.reserve(text.size());
  for (;;) {
    const std::size_t found = text.find(from);
    replaced.append(text.substr(0, found));
    if (found == std::string_view::npos) {
      return replaced;
    }
    replaced.append(to);
    text.remove_prefix(found + from.size());
  }
}

/// Where the next word of `text` begins: at the first U+2581 after another character, or npos.
std::size_t next_word(std::string_view text) {
  std::size_t from = 0;
  for (;;) {
    const std::size_t found = text.find(visible_space, from);
    if (found != from) {
      return found;
    }
    from = found + visible_space.size();
  }
}

}  // namespace

std::string show_spaces(std::string_view text) {
  return replace_all(text, " ", visible_space);
}

std::string hide_spaces(std::string_view text) {
  return replace_all(text, visible_space, " ");
}

bool has_token_across_words(const TokenTable& tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const TokenId token = tokens.id(i);
    if (is_plain(tokens.type(token)) && next_word(tokens.text(token)) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

std::vector<std::uint32_t> word_lengths(std::string_view text) {
  std::vector<std::uint32_t> lengths;
  while (!text.empty()) {
    const std::size_t length = std::min(next_word(text), text.size());
    lengths.push_back(static_cast<std::uint32_t>(length));
    text.remove_prefix(length);
  }
  return lengths;
}

}  // namespace hearth::tokenizer
