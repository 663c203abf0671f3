#include "chat/template/text.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace hearth::chat {

Text::Text(std::string bytes, Origin origin) : bytes_(std::move(bytes)) {
  if (!bytes_.empty()) {
    runs_.push_back({bytes_.size(), origin});
  }
}

Text Text::slice(std::size_t begin, std::size_t end) const {
  TextBuilder builder;
  builder.append(*this, begin, end);
  return builder.take();
}

std::size_t Text::run_at(std::size_t offset) const {
  HEARTH_ASSERT(offset < bytes_.size());
  const auto run = std::upper_bound(runs_.begin(), runs_.end(), offset,
                                    [](std::size_t at, const Run& r) { return at < r.end; });
  return static_cast<std::size_t>(run - runs_.begin());
}

Origin Text::origin_at(std::size_t offset) const {
  return runs_[run_at(offset)].origin;
}

Origin Text::weakest_origin() const {
  const auto is_untrusted = [](const Run& run) { return run.origin == Origin::untrusted; };
  return std::any_of(runs_.begin(), runs_.end(), is_untrusted) ? Origin::untrusted
                                                               : Origin::trusted;
}

std::vector<TextPart> Text::parts() const {
  std::vector<TextPart> parts;
  std::size_t begin = 0;
  for (const Run& run : runs_) {
    parts.push_back({bytes_.substr(begin, run.end - begin), run.origin == Origin::trusted});
    begin = run.end;
  }
  return parts;
}

void TextBuilder::append(std::string_view bytes, Origin origin) {
  if (bytes.empty()) {
    return;
  }
  text_.bytes_.append(bytes);
  auto& runs = text_.runs_;
  if (!runs.empty() && runs.back().origin == origin) {
    runs.back().end = text_.bytes_.size();
  } else {
    runs.push_back({text_.bytes_.size(), origin});
  }
}

void TextBuilder::append(const Text& text, std::size_t begin, std::size_t end) {
  HEARTH_ASSERT(begin <= end && end <= text.size());
  const std::string_view bytes = text.bytes();
  while (begin < end) {
    const Text::Run& run = text.runs_[text.run_at(begin)];
    const std::size_t stop = std::min(run.end, end);
    append(bytes.substr(begin, stop - begin), run.origin);
    begin = stop;
  }
}

Text TextBuilder::take(std::shared_ptr<const void> lease) {
  text_.lease_ = std::move(lease);
  return std::exchange(text_, Text());
}

}  // namespace hearth::chat
