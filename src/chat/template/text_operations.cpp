#include "chat/template/text_operations.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/checked.h"
#include "base/fail.h"
#include "chat/template/print.h"
#include "chat/template/search.h"
#include "chat/template/sequence.h"
#include "chat/template/unicode.h"

namespace hearth::chat {
namespace {

/// Half-open ranges of bytes that become the items of a list.
struct Piece {
  std::size_t begin;
  std::size_t end;
};

Result<Value> list_of(Runtime& runtime, const Text& text, const std::vector<Piece>& pieces) {
  HEARTH_TRY(runtime.budget().spend_list(pieces.size()));
  std::vector<Value> items;
  for (const auto& [begin, end] : pieces) {
    HEARTH_ASSIGN(auto item, part_of(runtime, text, begin, end));
    items.push_back(std::move(item));
  }
  return runtime.make_list(std::move(items));
}

/// Counts down the cuts that are still allowed: `max_cuts` unless that is negative, and at most
/// `limit`.
class CutsLeft {
 public:
  explicit CutsLeft(std::int64_t max_cuts,
                    std::size_t limit = std::numeric_limits<std::int64_t>::max())
      : left_(static_cast<std::int64_t>(limit)) {
    left_ = max_cuts < 0 ? left_ : std::min(left_, max_cuts);
  }
  bool take() { return left_-- > 0; }

 private:
  std::int64_t left_;
};

std::vector<Piece> split_at(std::string_view bytes, std::string_view separator, CutsLeft cuts) {
  std::vector<Piece> pieces;
  std::size_t begin = 0;
  while (cuts.take()) {
    const auto at = find_bytes(bytes, separator, begin);
    if (!at) {
      break;
    }
    pieces.push_back({begin, *at});
    begin = *at + separator.size();
  }
  pieces.push_back({begin, bytes.size()});
  return pieces;
}

std::string reversed(std::string_view bytes) {
  return {bytes.rbegin(), bytes.rend()};
}

/// The same on the mirrored text, because a backward search would mirror it again for every match.
std::vector<Piece> split_at_from_right(std::string_view bytes, std::string_view separator,
                                       CutsLeft cuts) {
  std::vector<Piece> pieces = split_at(reversed(bytes), reversed(separator), cuts);
  std::reverse(pieces.begin(), pieces.end());
  for (Piece& piece : pieces) {
    piece = {bytes.size() - piece.end, bytes.size() - piece.begin};
  }
  return pieces;
}

/// Where the run of characters that satisfy `wanted` ends that starts at `at`.
template <class Predicate>
std::size_t run_end(std::string_view bytes, std::size_t at, Predicate wanted) {
  while (at < bytes.size()) {
    const CodePoint c = code_point_at(bytes, at);
    if (!wanted(c.value)) {
      break;
    }
    at += c.n_bytes;
  }
  return at;
}

/// Where the run of characters that satisfy `wanted` begins that ends at `at`.
template <class Predicate>
std::size_t run_begin(std::string_view bytes, std::size_t at, Predicate wanted) {
  while (at > 0) {
    const std::size_t previous = previous_code_point(bytes, at);
    if (!wanted(code_point_at(bytes, previous).value)) {
      break;
    }
    at = previous;
  }
  return at;
}

bool is_not_space(char32_t c) {
  return !is_space(c);
}

std::vector<Piece> split_words(std::string_view bytes, CutsLeft cuts) {
  std::vector<Piece> pieces;
  std::size_t at = run_end(bytes, 0, is_space);
  while (at < bytes.size()) {
    if (!cuts.take()) {
      pieces.push_back({at, bytes.size()});
      break;
    }
    const std::size_t end = run_end(bytes, at, is_not_space);
    pieces.push_back({at, end});
    at = run_end(bytes, end, is_space);
  }
  return pieces;
}

std::vector<Piece> split_words_from_right(std::string_view bytes, CutsLeft cuts) {
  std::vector<Piece> pieces;
  std::size_t at = run_begin(bytes, bytes.size(), is_space);
  while (at > 0) {
    if (!cuts.take()) {
      pieces.push_back({0, at});
      break;
    }
    const std::size_t begin = run_begin(bytes, at, is_not_space);
    pieces.push_back({begin, at});
    at = run_begin(bytes, begin, is_space);
  }
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

std::vector<Piece> pieces_of(std::string_view bytes, const Text* separator, CutsLeft cuts,
                             bool from_right) {
  if (!separator) {
    return from_right ? split_words_from_right(bytes, cuts) : split_words(bytes, cuts);
  }
  return from_right ? split_at_from_right(bytes, separator->bytes(), cuts)
                    : split_at(bytes, separator->bytes(), cuts);
}

Failure empty_separator() {
  return fail(ErrorCode::invalid_file, "the separator cannot be empty");
}

/// An empty `from` matches before every character and at the end.
Result<Value> insert_everywhere(Runtime& runtime, const Text& text, const Text& to, CutsLeft cuts) {
  TextWriter out(runtime.budget());
  std::size_t at = 0;
  while (cuts.take()) {
    HEARTH_TRY(runtime.budget().spend_steps(1));
    HEARTH_TRY(out.append(to));
    if (at == text.size()) {
      break;
    }
    const std::size_t next = at + code_point_at(text.bytes(), at).n_bytes;
    HEARTH_TRY(out.append(text, at, next));
    at = next;
  }
  HEARTH_TRY(out.append(text, at, text.size()));
  return out.take_value();
}

}  // namespace

Result<Value> strip(Runtime& runtime, const Text& text, const Text* chars, Side side) {
  std::u32string wanted;
  for (std::size_t at = 0; chars && at < chars->size();) {
    const CodePoint c = code_point_at(chars->bytes(), at);
    wanted.push_back(c.value);
    at += c.n_bytes;
  }
  HEARTH_TRY(runtime.budget().spend_scan(text.size() * (1 + wanted.size() / 16)));
  const auto is_stripped = [&](char32_t c) {
    return chars ? wanted.find(c) != std::u32string::npos : is_space(c);
  };
  const std::string_view bytes = text.bytes();
  const std::size_t begin = side == Side::right ? 0 : run_end(bytes, 0, is_stripped);
  const std::size_t end = side == Side::left ? bytes.size()
                                             : begin + run_begin(bytes.substr(begin),
                                                                 bytes.size() - begin, is_stripped);
  return part_of(runtime, text, begin, end);
}

Result<Value> split(Runtime& runtime, const Text& text, const Text* separator,
                    std::int64_t max_splits, bool from_right) {
  if (separator && separator->empty()) {
    return empty_separator();
  }
  HEARTH_TRY(runtime.budget().spend_scan(text.size()));
  // More pieces than a list may have are refused by list_of; there is no need to find them all.
  const CutsLeft cuts(max_splits, runtime.budget().limits().list_items);
  return list_of(runtime, text, pieces_of(text.bytes(), separator, cuts, from_right));
}

Result<Value> split_lines(Runtime& runtime, const Text& text, bool keeps_ends) {
  HEARTH_TRY(runtime.budget().spend_scan(text.size()));
  const std::string_view bytes = text.bytes();
  std::vector<Piece> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const CodePoint c = code_point_at(bytes, at);
    std::size_t next = at + c.n_bytes;
    if (is_line_break(c.value)) {
      next += bytes.substr(at).starts_with("\r\n") ? 1 : 0;
      lines.push_back({begin, keeps_ends ? next : at});
      begin = next;
    }
    at = next;
  }
  if (begin < bytes.size()) {
    lines.push_back({begin, bytes.size()});
  }
  return list_of(runtime, text, lines);
}

Result<Value> partition(Runtime& runtime, const Text& text, const Text& separator,
                        bool from_right) {
  if (separator.empty()) {
    return empty_separator();
  }
  HEARTH_TRY(runtime.budget().spend_scan(text.size()));
  const auto at = from_right ? find_last_bytes(text.bytes(), separator.bytes(), text.size())
                             : find_bytes(text.bytes(), separator.bytes(), 0);
  const std::size_t absent = from_right ? 0 : text.size();
  const std::size_t begin = at.value_or(absent);
  const std::size_t end = at ? begin + separator.size() : absent;
  HEARTH_ASSIGN(const Value parts,
                list_of(runtime, text, {{0, begin}, {begin, end}, {end, text.size()}}));
  return runtime.make_tuple(parts.as_list()->items);
}

Result<Value> replace(Runtime& runtime, const Text& text, const Text& from, const Text& to,
                      std::int64_t max_count) {
  CutsLeft cuts(max_count);
  HEARTH_TRY(runtime.budget().spend_scan(text.size()));
  if (from.empty()) {
    return insert_everywhere(runtime, text, to, cuts);
  }
  TextWriter out(runtime.budget());
  std::size_t copied = 0;
  while (cuts.take()) {
    const auto at = find_bytes(text.bytes(), from.bytes(), copied);
    if (!at) {
      break;
    }
    HEARTH_TRY(out.append(text, copied, *at));
    HEARTH_TRY(out.append(to));
    copied = *at + from.size();
  }
  HEARTH_TRY(out.append(text, copied, text.size()));
  return out.take_value();
}

Result<Value> join(Runtime& runtime, const Text& separator, const List& list) {
  TextWriter out(runtime.budget());
  for (const Value& item : list.items) {
    if (&item != &list.items.front()) {
      HEARTH_TRY(out.append(separator));
    }
    HEARTH_TRY(runtime.budget().spend_steps(1));
    HEARTH_TRY(write_str(out, item));
  }
  return out.take_value();
}

Result<Value> map_characters(Runtime& runtime, const Text& text,
                             const std::function<char32_t(char32_t, bool)>& map) {
  HEARTH_TRY(runtime.budget().spend_scan(text.size()));
  TextWriter out(runtime.budget());
  std::size_t copied = 0;  // up to here the text is written
  bool starts_word = true;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text.bytes(), at);
    const char32_t mapped = map(c.value, starts_word);
    if (mapped != c.value) {
      std::string bytes;
      append_utf8(bytes, mapped);
      HEARTH_TRY(out.append(text, copied, at));
      HEARTH_TRY(out.append(bytes, text.origin_at(at)));
      copied = at + c.n_bytes;
    }
    starts_word = !is_cased(c.value);
    at += c.n_bytes;
  }
  HEARTH_TRY(out.append(text, copied, text.size()));
  return out.take_value();
}

Result<Value> pad(Runtime& runtime, const Text& text, std::int64_t width, char align,
                  const Text& fill) {
  const auto n = static_cast<std::int64_t>(count_code_points(text.bytes()));
  const std::int64_t missing = std::max(width - n, std::int64_t{0});
  // str.center() puts the odd one left when the width is odd: CPython's rule, which Jinja inherits.
  const std::int64_t center_left = missing / 2 + (missing & width & 1);
  const std::int64_t left = align == '<' ? 0 : align == '>' ? missing : center_left;
  HEARTH_ASSIGN(const Value before, repeat(runtime, fill, left));
  HEARTH_ASSIGN(const Value after, repeat(runtime, fill, missing - left));
  TextWriter out(runtime.budget());
  HEARTH_TRY(out.append(*before.as_text()));
  HEARTH_TRY(out.append(text));
  HEARTH_TRY(out.append(*after.as_text()));
  return out.take_value();
}

Result<Value> repeat(Runtime& runtime, const Text& text, std::int64_t n) {
  const std::int64_t n_copies = text.empty() ? 0 : std::max(n, std::int64_t{0});
  const auto n_bytes = checked_mul(text.size(), static_cast<std::size_t>(n_copies));
  HEARTH_TRY(
      runtime.budget().spend_text(n_bytes.value_or(std::numeric_limits<std::size_t>::max()), 0));
  TextWriter out(runtime.budget());
  for (std::int64_t i = 0; i < n_copies; ++i) {
    HEARTH_TRY(out.append(text));
  }
  return out.take_value();
}

}  // namespace hearth::chat
