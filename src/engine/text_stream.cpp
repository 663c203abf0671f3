#include "engine/text_stream.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/assert.h"
#include "base/utf8.h"

namespace hearth::engine {

TextStream::TextStream(const tokenizer::Tokenizer& tokenizer, std::vector<std::string> stops,
                       tokenizer::DetokenizerOptions options)
    : tokenizer_(&tokenizer), detokenizer_(tokenizer, options), stops_(std::move(stops)) {
  // The first match found is then the shortest.
  std::sort(stops_.begin(), stops_.end(),
            [](const auto& a, const auto& b) { return a.size() < b.size(); });
  for (const auto& stop : stops_) {
    HEARTH_ASSERT(!stop.empty() && is_valid_utf8(stop));
  }
}

std::string TextStream::push(TokenId token) {
  if (stop_) {
    return {};
  }
  const bool is_stop_token =
      tokenizer_->is_control(token) &&
      std::find(stops_.begin(), stops_.end(), tokenizer_->token_text(token)) != stops_.end();
  if (is_stop_token) {
    auto text = finish();
    if (!stop_) {
      stop_ = tokenizer_->token_text(token);
    }
    return text;
  }
  held_back_ += detokenizer_.push(token);
  return take_certain(More::follows);
}

std::string TextStream::finish() {
  if (stop_) {
    return {};
  }
  held_back_ += detokenizer_.flush();
  return take_certain(More::never);
}

std::string TextStream::take_certain(More more) {
  const std::string_view text = held_back_;
  std::size_t n_certain = 0;
  for (; n_certain < text.size(); ++n_certain) {
    const auto rest = text.substr(n_certain);
    if (const auto* match = match_at(rest)) {
      stop_ = *match;
      break;
    }
    if (more == More::follows && may_begin_a_stop(rest)) {
      break;
    }
  }
  std::string certain = held_back_.substr(0, n_certain);
  held_back_.erase(0, stop_ ? held_back_.size() : n_certain);
  return certain;
}

const std::string* TextStream::match_at(std::string_view text) const {
  const auto found = std::find_if(stops_.begin(), stops_.end(),
                                  [&](const auto& stop) { return text.starts_with(stop); });
  return found == stops_.end() ? nullptr : &*found;
}

bool TextStream::may_begin_a_stop(std::string_view text) const {
  return std::any_of(stops_.begin(), stops_.end(),
                     [&](const auto& stop) { return std::string_view(stop).starts_with(text); });
}

}  // namespace hearth::engine
