#include "chat/template/literals.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "base/fail.h"
#include "chat/template/unicode.h"

namespace hearth::chat {
namespace {

char at(std::string_view text, std::size_t index) {
  return index < text.size() ? text[index] : '\0';
}

int digit_value(char c) {
  const char low = static_cast<char>(c | 0x20);  // lower case
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  return low >= 'a' && low <= 'f' ? low - 'a' + 10 : 16;
}

/// Reads one number; single underscores may separate digits.
class NumberReader {
 public:
  explicit NumberReader(std::string_view source) : source_(source) {}

  Result<SpelledLiteral> read(bool allows_real) {
    constexpr std::string_view prefixes = "bBoOxX";
    if (peek() == '0' && peek(1) != '\0' && prefixes.find(peek(1)) != std::string_view::npos) {
      const char kind = static_cast<char>(peek(1) | 0x20);
      at_ = 2;
      const int base = kind == 'b' ? 2 : kind == 'o' ? 8 : 16;
      take_digits(base);
      return integer(base);
    }
    take_digits(10);
    const bool is_real = allows_real && take_fraction_and_exponent();
    return is_real ? real() : integer(10);
  }

 private:
  [[nodiscard]] char peek(std::size_t ahead = 0) const { return at(source_, at_ + ahead); }
  [[nodiscard]] bool has_digit(std::size_t ahead, int base = 10) const {
    return digit_value(peek(ahead)) < base;
  }

  void take_digits(int base) {
    while (has_digit(0, base) || (peek() == '_' && has_digit(1, base))) {
      if (peek() != '_') {
        spelling_.push_back(peek());
      }
      ++at_;
    }
  }

  bool take_fraction_and_exponent() {
    bool is_real = false;
    if (peek() == '.' && has_digit(1)) {
      is_real = true;
      spelling_.push_back(source_[at_++]);
      take_digits(10);
    }
    const std::size_t n_sign = peek(1) == '+' || peek(1) == '-' ? 1 : 0;
    if ((peek() == 'e' || peek() == 'E') && has_digit(1 + n_sign)) {
      is_real = true;
      spelling_ += source_.substr(at_, 1 + n_sign);
      at_ += 1 + n_sign;
      take_digits(10);
    }
    return is_real;
  }

  Result<SpelledLiteral> integer(int base) const {
    std::int64_t value = 0;
    const char* end = spelling_.data() + spelling_.size();
    const auto parsed = std::from_chars(spelling_.data(), end, value, base);
    if (parsed.ec != std::errc() || parsed.ptr != end) {
      return fail(ErrorCode::invalid_file, "the integer '{}' does not fit in 64 bits", spelling_);
    }
    return SpelledLiteral{TokenKind::integer, spelling_, value, at_};
  }

  Result<SpelledLiteral> real() const {
    const double value = std::strtod(spelling_.c_str(), nullptr);
    return SpelledLiteral{TokenKind::real, spelling_, value, at_};
  }

  std::string_view source_;
  std::size_t at_ = 0;
  std::string spelling_;
};

struct SimpleEscape {
  char letter;
  std::string_view meaning;
};

constexpr std::array simple_escapes{
    SimpleEscape{'n', "\n"},  SimpleEscape{'t', "\t"}, SimpleEscape{'r', "\r"},
    SimpleEscape{'\\', "\\"}, SimpleEscape{'\'', "'"}, SimpleEscape{'"', "\""},
    SimpleEscape{'a', "\a"},  SimpleEscape{'b', "\b"}, SimpleEscape{'f', "\f"},
    SimpleEscape{'v', "\v"},  SimpleEscape{'\n', ""},
};

struct CodeEscape {
  char letter;
  std::size_t n_digits;
};

constexpr std::array code_escapes{CodeEscape{'x', 2}, CodeEscape{'u', 4}, CodeEscape{'U', 8}};

/// Appends the character whose number `digits` spell. Returns false when there is no such
/// character.
bool append_character(std::string& text, std::string_view digits, int base) {
  std::uint32_t code = 0;
  const char* end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, code, base);
  const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (parsed.ec != std::errc() || parsed.ptr != end || code > 0x10FFFF || is_surrogate) {
    return false;
  }
  append_utf8(text, static_cast<char32_t>(code));
  return true;
}

std::size_t n_octal_digits(std::string_view source) {
  std::size_t n = 0;
  while (n < 3 && digit_value(at(source, n)) < 8) {
    ++n;
  }
  return n;
}

/// Decodes the backslash sequence that `source` starts with onto `text`; returns its size.
/// Unknown sequences stay as they are, as in Python.
Result<std::size_t> decode_escape(std::string_view source, std::string& text) {
  const char letter = at(source, 1);
  for (const auto& [wanted, meaning] : simple_escapes) {
    if (letter == wanted) {
      text += meaning;
      return 2;
    }
  }
  std::size_t n_digits = n_octal_digits(source.substr(1));
  std::size_t n_before = 1;
  int base = 8;
  for (const auto& [wanted, n] : code_escapes) {
    if (letter == wanted) {
      n_digits = n;
      n_before = 2;
      base = 16;
    }
  }
  if (n_digits == 0) {
    text.push_back('\\');
    return 1;
  }
  const std::string_view digits = source.substr(std::min(n_before, source.size()), n_digits);
  if (digits.size() != n_digits || !append_character(text, digits, base)) {
    return fail(ErrorCode::invalid_file, "the escape '{}' names no character",
                source.substr(0, n_before + n_digits));
  }
  return n_before + n_digits;
}

}  // namespace

Result<SpelledLiteral> read_number(std::string_view source, bool allows_real) {
  return NumberReader(source).read(allows_real);
}

Result<SpelledLiteral> read_string(std::string_view source) {
  const char quote = source.front();
  SpelledLiteral literal{.kind = TokenKind::string, .text = {}, .number = {}};
  std::size_t i = 1;
  while (i < source.size() && source[i] != quote) {
    if (source[i] == '\\') {
      HEARTH_ASSIGN(const std::size_t n_bytes, decode_escape(source.substr(i), literal.text));
      i += n_bytes;
    } else {
      literal.text.push_back(source[i++]);
    }
  }
  if (i >= source.size()) {
    return fail(ErrorCode::invalid_file, "the string is never closed");
  }
  literal.n_bytes = i + 1;
  return literal;
}

}  // namespace hearth::chat
