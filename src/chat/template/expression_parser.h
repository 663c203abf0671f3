#pragma once
/// Expressions of the template language, by recursive descent.
/// Precedence from loosest: conditional, or, and, not, comparisons, + -, ~, * / // %, **, unary,
/// postfix, | and is.

#include <array>
#include <string_view>

#include "base/result.h"
#include "chat/template/ast.h"
#include "chat/template/token_stream.h"

namespace hearth::chat {

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  Result<ExpressionPtr> parse_expression();

  /// One expression, or several with commas as a tuple. Without `allows_conditional` an `if` ends
  /// it (for loops); `end_name` is a word that also ends it.
  Result<ExpressionPtr> parse_tuple(bool allows_conditional = true, std::string_view end_name = {});

  /// `| name(...)` repeated, applied to `subject` (null: to what the block around it renders).
  Result<ExpressionPtr> parse_filters(ExpressionPtr subject);
  /// `name(...)` without the bar.
  Result<ExpressionPtr> parse_filter(ExpressionPtr subject);

 private:
  Result<ExpressionPtr> parse_conditional();
  Result<ExpressionPtr> parse_logical(std::string_view word);
  Result<ExpressionPtr> parse_not();
  Result<ExpressionPtr> parse_comparison();
  Result<ExpressionPtr> parse_sum();
  Result<ExpressionPtr> parse_concatenation();
  Result<ExpressionPtr> parse_product();
  Result<ExpressionPtr> parse_power();
  Result<ExpressionPtr> parse_operand();
  Result<ExpressionPtr> parse_unary(bool takes_filters);
  Result<ExpressionPtr> parse_primary();
  Result<ExpressionPtr> parse_name();
  Result<ExpressionPtr> parse_list();
  Result<ExpressionPtr> parse_dict();
  Result<ExpressionPtr> parse_parenthesized();
  Result<ExpressionPtr> parse_postfix(ExpressionPtr expression);
  Result<ExpressionPtr> parse_filters_and_tests(ExpressionPtr expression);
  Result<ExpressionPtr> parse_test(ExpressionPtr subject);
  Result<ExpressionPtr> parse_dot(ExpressionPtr object);
  Result<ExpressionPtr> parse_subscript(ExpressionPtr object);
  Result<CallArguments> parse_call_arguments();
  Result<void> parse_call_argument(CallArguments& arguments);
  Result<std::string> parse_dotted_name();
  [[nodiscard]] bool starts_test_argument() const;

  template <class Operator, std::size_t n>
  Result<ExpressionPtr> parse_binary(const std::array<Operator, n>& operators,
                                     Result<ExpressionPtr> (ExpressionParser::*operand)());
  Result<void> check_chain(int length) const;

  TokenStream& tokens_;
  int depth_ = 0;
};

}  // namespace hearth::chat
