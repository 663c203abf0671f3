#pragma once
/// A cursor over the tokens of a template, and the guard against deep nesting.

#include <string_view>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "chat/template/lexer.h"

namespace hearth::chat {

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  [[nodiscard]] const Token& current() const { return tokens_[at_]; }
  [[nodiscard]] const Token& next() const {
    return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_];
  }
  [[nodiscard]] int line() const { return current().line; }

  /// The current token; the cursor moves on, but never past the end token.
  const Token& take() {
    const Token& token = tokens_[at_];
    at_ += token.kind == TokenKind::end ? 0 : 1;
    return token;
  }

  [[nodiscard]] bool at(TokenKind kind) const { return current().kind == kind; }
  [[nodiscard]] bool at_name(std::string_view name) const {
    return is(current(), TokenKind::name, name);
  }
  [[nodiscard]] bool at_symbol(std::string_view symbol) const {
    return is(current(), TokenKind::symbol, symbol);
  }
  [[nodiscard]] static bool is(const Token& token, TokenKind kind, std::string_view text) {
    return token.kind == kind && token.text == text;
  }

  bool skip_name(std::string_view name) { return skip_if(at_name(name)); }
  bool skip_symbol(std::string_view symbol) { return skip_if(at_symbol(symbol)); }

  Result<void> expect_symbol(std::string_view symbol) {
    return skip_symbol(symbol) ? Result<void>() : unexpected(symbol);
  }
  Result<void> expect_name(std::string_view name) {
    return skip_name(name) ? Result<void>() : unexpected(name);
  }
  Result<void> expect(TokenKind kind, std::string_view what) {
    return skip_if(at(kind)) ? Result<void>() : unexpected(what);
  }
  Result<std::string> take_identifier() {
    return at(TokenKind::name) ? Result<std::string>(take().text) : unexpected("a name");
  }

  [[nodiscard]] Failure unexpected(std::string_view expected) const {
    return error(line(), format("expected {}, found {}", expected, describe(current())));
  }
  [[nodiscard]] static Failure error(int line, std::string_view message) {
    return fail(ErrorCode::invalid_file, "chat template line {}: {}", line, message);
  }

 private:
  bool skip_if(bool condition) {
    at_ += condition ? 1 : 0;
    return condition;
  }
  static std::string describe(const Token& token);

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
};

/// Counts nesting while it lives.
class DepthGuard {
 public:
  explicit DepthGuard(int& depth) : depth_(++depth) {}
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;
  ~DepthGuard() { --depth_; }

 private:
  int& depth_;
};

/// How deep brackets and blocks may nest in a template (released ones reach about 20), and how long
/// a chain of postfix operators may be. The parser, the evaluator and the tree's destructor recurse
/// along both.
inline constexpr int max_syntax_depth = 100;
inline constexpr int max_chain_length = 100;

}  // namespace hearth::chat
