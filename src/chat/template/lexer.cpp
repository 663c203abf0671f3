#include "chat/template/lexer.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/fail.h"
#include "chat/template/literals.h"
#include "chat/template/unicode.h"

namespace hearth::chat {
namespace {

constexpr std::array<std::string_view, 25> symbols{
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
    "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ","};

// Every use of a name compares it as a whole.
constexpr std::size_t max_name_bytes = 256;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

bool is_name_part(char c) {
  return is_name_start(c) || is_digit(c);
}

/// "\r\n" and "\r" become "\n", and one newline at the very end is dropped.
std::string normalize_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out.push_back(source[i]);
    } else if (i + 1 == source.size() || source[i + 1] != '\n') {
      out.push_back('\n');
    }
  }
  if (out.ends_with('\n')) {
    out.pop_back();
  }
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  Result<std::vector<Token>> run() {
    while (at_ < source_.size()) {
      HEARTH_TRY(lex_data_and_tag());
    }
    push(TokenKind::end, "");
    return std::move(tokens_);
  }

 private:
  [[nodiscard]] bool looking_at(std::string_view text) const {
    return std::string_view(source_).substr(at_).starts_with(text);
  }

  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }

  void push(TokenKind kind, std::string text) {
    tokens_.push_back({kind, line_, std::move(text), std::int64_t{0}});
  }

  void advance(std::size_t n_bytes) {
    if (n_bytes == 0) {
      return;
    }
    const auto begin = source_.begin() + static_cast<std::ptrdiff_t>(at_);
    line_ +=
        static_cast<int>(std::count(begin, begin + static_cast<std::ptrdiff_t>(n_bytes), '\n'));
    at_ += n_bytes;
    is_line_start_ = source_[at_ - 1] == '\n';
  }

  /// Where the white space that starts at `at` ends.
  [[nodiscard]] std::size_t space_end(std::size_t at) const {
    while (at < source_.size() && is_space(code_point_at(source_, at).value)) {
      at += code_point_at(source_, at).n_bytes;
    }
    return at;
  }

  Failure error(int line, std::string_view message) const {
    return fail(ErrorCode::invalid_file, "chat template line {}: {}", line, message);
  }

  /// Where the next `{{`, `{%` or `{#` is; the end of the source without one.
  [[nodiscard]] std::size_t find_tag() const {
    for (std::size_t at = source_.find('{', at_); at != std::string::npos;
         at = source_.find('{', at + 1)) {
      const char next = at + 1 < source_.size() ? source_[at + 1] : '\0';
      if (next == '{' || next == '%' || next == '#') {
        return at;
      }
    }
    return source_.size();
  }

  /// The white-space sign at `at`, or '\0'.
  [[nodiscard]] char sign_at(std::size_t at) const {
    const char c = at < source_.size() ? source_[at] : '\0';
    return c == '-' || c == '+' ? c : '\0';
  }

  /// The data before a tag that ends at `end`, stripped as the tag's sign and kind ask.
  [[nodiscard]] std::string_view data_before(std::size_t end, char kind, char sign) const {
    const std::string_view data = std::string_view(source_).substr(at_, end - at_);
    if (sign == '-') {
      return data.substr(0, trimmed_size(data, 0));
    }
    if (sign == '+' || kind == '{') {
      return data;
    }
    // lstrip_blocks: spaces between the start of the line and a block or comment go.
    const std::size_t newline = data.rfind('\n');
    const std::size_t line_begin = newline == std::string_view::npos ? 0 : newline + 1;
    const bool is_line = line_begin > 0 || is_line_start_;
    return is_line && trimmed_size(data, line_begin) == line_begin ? data.substr(0, line_begin)
                                                                   : data;
  }

  /// The size of `data` without the white space at its end, but at least `least`.
  static std::size_t trimmed_size(std::string_view data, std::size_t least) {
    std::size_t end = data.size();
    while (end > least) {
      const std::size_t begin = previous_code_point(data, end);
      if (!is_space(code_point_at(data, begin).value)) {
        break;
      }
      end = begin;
    }
    return end;
  }

  void push_data(std::string_view data) {
    if (!data.empty()) {
      push(TokenKind::data, std::string(data));
    }
  }

  Result<void> lex_data_and_tag() {
    const std::size_t tag = find_tag();
    if (tag == source_.size()) {
      push_data(std::string_view(source_).substr(at_));
      advance(source_.size() - at_);
      return {};
    }
    const char kind = source_[tag + 1];
    const char sign = sign_at(tag + 2);
    push_data(data_before(tag, kind, sign));
    advance(tag - at_ + 2 + (sign ? 1 : 0));
    switch (kind) {
      case '#':
        return skip_comment();
      case '%':
        return lex_block();
      default:
        return lex_tag(TokenKind::variable_begin, "}}");
    }
  }

  /// The size of a closing delimiter (with its sign) at `at`, or nothing.
  [[nodiscard]] std::optional<std::size_t> closing_size(std::size_t at,
                                                        std::string_view delimiter) const {
    const std::string_view rest = std::string_view(source_).substr(at);
    if (rest.starts_with(delimiter)) {
      return delimiter.size();
    }
    const bool has_sign = rest.starts_with('-') || (delimiter != "}}" && rest.starts_with('+'));
    const bool closes = has_sign && rest.substr(1).starts_with(delimiter);
    return closes ? std::optional(delimiter.size() + 1) : std::nullopt;
  }

  /// Passes a closing delimiter and what its sign and trim_blocks remove after it.
  void close(std::size_t n_bytes, bool trims_newline) {
    const char sign = source_[at_];
    advance(n_bytes);
    if (sign == '-') {
      advance(space_end(at_) - at_);
    } else if (sign != '+' && trims_newline && peek() == '\n') {
      advance(1);
    }
  }

  Result<void> skip_comment() {
    const int line = line_;
    while (at_ < source_.size()) {
      if (const auto n_bytes = closing_size(at_, "#}")) {
        close(*n_bytes, true);
        return {};
      }
      advance(1);
    }
    return error(line, "the comment is never closed with '#}'");
  }

  /// If the block tag whose content starts at `at` holds just `keyword`: where its closing
  /// delimiter is.
  [[nodiscard]] std::optional<std::size_t> closing_of_keyword_tag(std::size_t at,
                                                                  std::string_view keyword) const {
    at = space_end(at);
    if (!std::string_view(source_).substr(at).starts_with(keyword)) {
      return std::nullopt;
    }
    at = space_end(at + keyword.size());
    return closing_size(at, "%}") ? std::optional(at) : std::nullopt;
  }

  /// A block tag after its opening delimiter: raw blocks are data, all else is tokens.
  Result<void> lex_block() {
    const auto closing = closing_of_keyword_tag(at_, "raw");
    if (!closing) {
      return lex_tag(TokenKind::block_begin, "%}");
    }
    const int line = line_;
    advance(*closing - at_);
    close(*closing_size(at_, "%}"), false);
    for (std::size_t tag = source_.find("{%", at_); tag != std::string::npos;
         tag = source_.find("{%", tag + 2)) {
      const char sign = sign_at(tag + 2);
      const auto end = closing_of_keyword_tag(tag + 2 + (sign ? 1 : 0), "endraw");
      if (end) {
        push_data(data_before(tag, '%', sign));
        advance(*end - at_);
        close(*closing_size(at_, "%}"), true);
        return {};
      }
    }
    return error(line, "the raw block is never closed with '{% endraw %}'");
  }

  Result<void> lex_tag(TokenKind begin, std::string_view delimiter) {
    const int line = line_;
    push(begin, "");
    std::string open_brackets;
    while (at_ < source_.size()) {
      advance(space_end(at_) - at_);
      const auto n_bytes = closing_size(at_, delimiter);
      if (n_bytes && open_brackets.empty()) {
        const bool is_block = begin == TokenKind::block_begin;
        push(is_block ? TokenKind::block_end : TokenKind::variable_end, "");
        close(*n_bytes, is_block);
        return {};
      }
      if (at_ < source_.size()) {
        HEARTH_TRY(lex_token(open_brackets));
      }
    }
    return error(line, format("the tag is never closed with '{}'", delimiter));
  }

  Result<void> lex_token(std::string& open_brackets) {
    const char c = peek();
    const std::string_view rest = std::string_view(source_).substr(at_);
    if (is_digit(c)) {
      const bool follows_dot = at_ > 0 && source_[at_ - 1] == '.';  // a.0.1 is two subscripts
      return push_literal(read_number(rest, !follows_dot));
    }
    if (c == '\'' || c == '"') {
      return push_literal(read_string(rest));
    }
    if (is_name_start(c)) {
      const auto begin = at_;
      while (is_name_part(peek())) {
        advance(1);
      }
      if (at_ - begin > max_name_bytes) {
        return error(line_,
                     format("a name has {} bytes, more than {}", at_ - begin, max_name_bytes));
      }
      push(TokenKind::name, source_.substr(begin, at_ - begin));
      return {};
    }
    return lex_symbol(open_brackets);
  }

  Result<void> lex_symbol(std::string& open_brackets) {
    const auto symbol = std::find_if(symbols.begin(), symbols.end(),
                                     [this](std::string_view s) { return looking_at(s); });
    if (symbol == symbols.end()) {
      return error(line_, format("unexpected character '{}'", peek()));
    }
    constexpr std::string_view opening = "([{";
    constexpr std::string_view closing = ")]}";
    const char c = peek();
    if (const auto kind = opening.find(c); kind != std::string_view::npos) {
      open_brackets.push_back(closing[kind]);
    } else if (closing.find(c) != std::string_view::npos) {
      if (open_brackets.empty() || open_brackets.back() != c) {
        return error(line_, format("unexpected '{}'", c));
      }
      open_brackets.pop_back();
    }
    push(TokenKind::symbol, std::string(*symbol));
    advance(symbol->size());
    return {};
  }

  /// Appends what `literal` read and passes it.
  Result<void> push_literal(Result<SpelledLiteral> literal) {
    if (!literal) {
      return error(line_, literal.error().message);
    }
    tokens_.push_back({literal->kind, line_, std::move(literal->text), literal->number});
    advance(literal->n_bytes);
    return {};
  }

  std::string source_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool is_line_start_ = true;  // whether the character before at_ ends a line
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view source) {
  return Lexer(normalize_newlines(source)).run();
}

}  // namespace hearth::chat
