#pragma once
/// UTF-8 text that remembers, for each byte, whether the template's author wrote it.
///
/// Every string operation of the interpreter is built from `slice` and `TextBuilder::append`, so
/// origins follow the characters through concatenation, splitting, replacing and encoding by
/// construction.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/text_part.h"

namespace hearth::chat {

/// Who wrote a character.
enum class Origin : std::uint8_t {
  untrusted,  // message content, tool arguments, schemas, request variables: anything a peer can
              // choose
  trusted,    // the template's own text, begin/end tokens, counts made by the interpreter
};

/// The origin of something computed from two others: trusted only when both are.
[[nodiscard]] constexpr Origin weaker(Origin a, Origin b) {
  return a == Origin::trusted && b == Origin::trusted ? Origin::trusted : Origin::untrusted;
}

/// Immutable once built. Invalid UTF-8 is carried through: a stray byte counts as one character.
class Text {
 public:
  Text() = default;
  Text(std::string bytes, Origin origin);

  [[nodiscard]] std::string_view bytes() const { return bytes_; }
  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }

  /// The bytes [begin, end), with their origins. Requires begin <= end <= size().
  [[nodiscard]] Text slice(std::size_t begin, std::size_t end) const;

  /// Requires offset < size().
  [[nodiscard]] Origin origin_at(std::size_t offset) const;

  /// Trusted when every character is (an empty text is).
  [[nodiscard]] Origin weakest_origin() const;

  /// The maximal runs of one origin, in order; together they spell bytes().
  [[nodiscard]] std::vector<TextPart> parts() const;

 private:
  friend class TextBuilder;
  struct Run {
    std::size_t end;  // one past the last byte; the run begins where the previous one ends
    Origin origin;
  };
  [[nodiscard]] std::size_t run_at(std::size_t offset) const;

  std::shared_ptr<const void> lease_;  // returns the text's share of a render's memory; may be null
  std::string bytes_;
  std::vector<Run>
      runs_;  // ends strictly increase, neighbours differ in origin, the last end is size()
};

/// Appends pieces of text and merges neighbours of the same origin. One thread at a time.
class TextBuilder {
 public:
  void append(std::string_view bytes, Origin origin);
  void append(const Text& text) { append(text, 0, text.size()); }
  /// Appends the bytes [begin, end) of `text`.
  void append(const Text& text, std::size_t begin, std::size_t end);

  [[nodiscard]] std::size_t size() const { return text_.size(); }
  /// Everything appended so far; the builder is empty afterwards. The text keeps `lease` alive.
  [[nodiscard]] Text take(std::shared_ptr<const void> lease = nullptr);

 private:
  Text text_;
};

}  // namespace hearth::chat
