#pragma once
/// How one value is spelled in formatted text: what Python's "%" and "{}" languages have in common.

#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "chat/template/runtime.h"

namespace hearth::chat {

inline constexpr int max_format_precision = 100;

/// How one value is to be spelled: the union of both mini-languages.
struct FormatSpec {
  std::string fill = " ";
  char align = '\0';  // '<', '>', '^', '=' (padding after the sign), or the kind's default
  char sign = '-';    // '+' and ' ' mark positive numbers too
  bool has_commas = false;
  int width = 0;
  std::optional<int> precision;
  char type = '\0';
};

/// A cursor over the bytes of a specification.
class SpecReader {
 public:
  explicit SpecReader(std::string_view text) : text_(text) {}

  [[nodiscard]] char peek() const { return text_.empty() ? '\0' : text_.front(); }
  [[nodiscard]] bool is_done() const { return text_.empty(); }
  [[nodiscard]] std::string_view rest() const { return text_; }
  void drop(std::size_t n) { text_.remove_prefix(n); }

  bool skip(char c) {
    const bool matches = !text_.empty() && text_.front() == c;
    drop(matches ? 1 : 0);
    return matches;
  }
  char take() {
    const char c = peek();
    drop(is_done() ? 0 : 1);
    return c;
  }
  /// A decimal number; nothing without digits. Numbers beyond an int fail later as too large.
  std::optional<int> take_number() {
    int value = 0;
    const auto parsed = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (parsed.ptr == text_.data() || text_.front() == '-') {
      return std::nullopt;
    }
    drop(static_cast<std::size_t>(parsed.ptr - text_.data()));
    return parsed.ec == std::errc() ? value : std::numeric_limits<int>::max();
  }

 private:
  std::string_view text_;
};

/// [[fill]align][sign][0][width][,][.precision][type] of Python's "Format Specification
/// Mini-Language". Errors: invalid_file for anything else.
Result<FormatSpec> parse_spec(std::string_view text);

/// `value` as `spec` says. Padding is untrusted. Errors: invalid_file when the type does not fit
/// the value.
Result<Value> format_value(Runtime& runtime, const Value& value, const FormatSpec& spec);

}  // namespace hearth::chat
