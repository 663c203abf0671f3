/// Operators, from loosest to tightest; primary_parser.cpp has what they join.
#include "chat/template/expression_parser.h"

#include <algorithm>
#include <array>
#include <utility>

namespace hearth::chat {
namespace {

struct SymbolOperator {
  std::string_view symbol;
  BinaryOperator op;
};

constexpr std::array sum_operators{SymbolOperator{"+", BinaryOperator::add},
                                   SymbolOperator{"-", BinaryOperator::subtract}};
constexpr std::array product_operators{SymbolOperator{"*", BinaryOperator::multiply},
                                       SymbolOperator{"/", BinaryOperator::divide},
                                       SymbolOperator{"//", BinaryOperator::floor_divide},
                                       SymbolOperator{"%", BinaryOperator::modulo}};
constexpr std::array power_operators{SymbolOperator{"**", BinaryOperator::power}};

struct SymbolComparison {
  std::string_view symbol;
  Comparison op;
};

constexpr std::array comparisons{
    SymbolComparison{"==", Comparison::eq}, SymbolComparison{"!=", Comparison::ne},
    SymbolComparison{"<", Comparison::lt},  SymbolComparison{"<=", Comparison::le},
    SymbolComparison{">", Comparison::gt},  SymbolComparison{">=", Comparison::ge}};

}  // namespace

Result<void> ExpressionParser::check_chain(int length) const {
  if (length > max_chain_length || depth_ > max_syntax_depth) {
    return TokenStream::error(tokens_.line(), "the expression nests too deep");
  }
  return {};
}

Result<ExpressionPtr> ExpressionParser::parse_expression() {
  return parse_conditional();
}

Result<ExpressionPtr> ExpressionParser::parse_tuple(bool allows_conditional,
                                                    std::string_view end_name) {
  const int line = tokens_.line();
  const auto at_end = [&] {
    return tokens_.at(TokenKind::variable_end) || tokens_.at(TokenKind::block_end) ||
           tokens_.at_symbol(")") || (!end_name.empty() && tokens_.at_name(end_name));
  };
  std::vector<ExpressionPtr> items;
  bool is_tuple = false;
  while (!at_end()) {
    HEARTH_ASSIGN(auto item, allows_conditional ? parse_conditional() : parse_logical("or"));
    items.push_back(std::move(item));
    if (!tokens_.skip_symbol(",")) {
      break;
    }
    is_tuple = true;
  }
  if (is_tuple) {
    return make_expression(line, TupleDisplay{std::move(items)});
  }
  if (items.empty()) {
    return tokens_.unexpected("an expression");
  }
  return std::move(items.front());
}

Result<ExpressionPtr> ExpressionParser::parse_conditional() {
  const DepthGuard guard(depth_);
  HEARTH_TRY(check_chain(0));
  HEARTH_ASSIGN(auto expression, parse_logical("or"));
  for (int length = 0; tokens_.at_name("if"); ++length) {
    HEARTH_TRY(check_chain(length));
    const int line = tokens_.take().line;
    HEARTH_ASSIGN(auto condition, parse_logical("or"));
    ExpressionPtr otherwise;
    if (tokens_.skip_name("else")) {
      HEARTH_ASSIGN(otherwise, parse_conditional());
    }
    expression = make_expression(
        line, Conditional{std::move(condition), std::move(expression), std::move(otherwise)});
  }
  return expression;
}

Result<ExpressionPtr> ExpressionParser::parse_logical(std::string_view word) {
  const bool is_and = word == "and";
  const int line = tokens_.line();
  std::vector<ExpressionPtr> operands;
  do {
    HEARTH_ASSIGN(auto operand, is_and ? parse_not() : parse_logical("and"));
    operands.push_back(std::move(operand));
  } while (tokens_.skip_name(word));
  if (operands.size() == 1) {
    return std::move(operands.front());
  }
  return make_expression(line, Logical{is_and, std::move(operands)});
}

Result<ExpressionPtr> ExpressionParser::parse_not() {
  if (!tokens_.at_name("not")) {
    return parse_comparison();
  }
  const DepthGuard guard(depth_);
  HEARTH_TRY(check_chain(0));
  const int line = tokens_.take().line;
  HEARTH_ASSIGN(auto operand, parse_not());
  return make_expression(line, Unary{Unary::Operator::logical_not, std::move(operand)});
}

Result<ExpressionPtr> ExpressionParser::parse_comparison() {
  const int line = tokens_.line();
  HEARTH_ASSIGN(auto first, parse_sum());
  Compare compare{std::move(first), {}};
  for (;;) {
    const auto symbol = std::find_if(comparisons.begin(), comparisons.end(),
                                     [&](const auto& c) { return tokens_.at_symbol(c.symbol); });
    Comparison op{};
    if (symbol != comparisons.end()) {
      tokens_.take();
      op = symbol->op;
    } else if (tokens_.skip_name("in")) {
      op = Comparison::in;
    } else if (tokens_.at_name("not") && TokenStream::is(tokens_.next(), TokenKind::name, "in")) {
      tokens_.take();
      tokens_.take();
      op = Comparison::not_in;
    } else {
      break;
    }
    HEARTH_ASSIGN(auto operand, parse_sum());
    compare.rest.emplace_back(op, std::move(operand));
  }
  if (compare.rest.empty()) {
    return std::move(compare.first);
  }
  return make_expression(line, std::move(compare));
}

template <class Operator, std::size_t n>
Result<ExpressionPtr> ExpressionParser::parse_binary(
    const std::array<Operator, n>& operators,
    Result<ExpressionPtr> (ExpressionParser::*operand)()) {
  const int line = tokens_.line();
  HEARTH_ASSIGN(auto first, (this->*operand)());
  Binary binary{std::move(first), {}};
  for (;;) {
    const auto found = std::find_if(operators.begin(), operators.end(), [&](const auto& candidate) {
      return tokens_.at_symbol(candidate.symbol);
    });
    if (found == operators.end()) {
      break;
    }
    tokens_.take();
    HEARTH_ASSIGN(auto right, (this->*operand)());
    binary.rest.emplace_back(found->op, std::move(right));
  }
  if (binary.rest.empty()) {
    return std::move(binary.first);
  }
  return make_expression(line, std::move(binary));
}

Result<ExpressionPtr> ExpressionParser::parse_sum() {
  return parse_binary(sum_operators, &ExpressionParser::parse_concatenation);
}

Result<ExpressionPtr> ExpressionParser::parse_concatenation() {
  const int line = tokens_.line();
  std::vector<ExpressionPtr> operands;
  do {
    HEARTH_ASSIGN(auto operand, parse_product());
    operands.push_back(std::move(operand));
  } while (tokens_.skip_symbol("~"));
  if (operands.size() == 1) {
    return std::move(operands.front());
  }
  return make_expression(line, Concatenation{std::move(operands)});
}

Result<ExpressionPtr> ExpressionParser::parse_product() {
  return parse_binary(product_operators, &ExpressionParser::parse_power);
}

Result<ExpressionPtr> ExpressionParser::parse_power() {
  return parse_binary(power_operators, &ExpressionParser::parse_operand);
}

Result<ExpressionPtr> ExpressionParser::parse_operand() {
  return parse_unary(true);
}

Result<ExpressionPtr> ExpressionParser::parse_unary(bool takes_filters) {
  const DepthGuard guard(depth_);
  HEARTH_TRY(check_chain(0));
  const int line = tokens_.line();
  ExpressionPtr expression;
  if (tokens_.at_symbol("-") || tokens_.at_symbol("+")) {
    const auto op = tokens_.take().text == "-" ? Unary::Operator::minus : Unary::Operator::plus;
    HEARTH_ASSIGN(auto operand, parse_unary(false));
    expression = make_expression(line, Unary{op, std::move(operand)});
  } else {
    HEARTH_ASSIGN(expression, parse_primary());
  }
  HEARTH_ASSIGN(expression, parse_postfix(std::move(expression)));
  return takes_filters ? parse_filters_and_tests(std::move(expression))
                       : Result<ExpressionPtr>(std::move(expression));
}

}  // namespace hearth::chat
