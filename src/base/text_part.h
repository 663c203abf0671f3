#pragma once
/// Text with its origin: what the chat renderer hands to the tokenizer.

#include <string>

namespace hearth {

/// A run of UTF-8 text of one origin. Only trusted text may become control tokens: it was written
/// in the template (or is the model's own begin/end token); everything else came from a user, a
/// tool or a file.
struct TextPart {
  std::string text;
  bool trusted = false;

  bool operator==(const TextPart&) const = default;
};

}  // namespace hearth
