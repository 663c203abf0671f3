#include "chat/template/expression_parser.h"

#include <algorithm>
#include <array>
#include <utility>

namespace hearth::chat {
namespace {

ExpressionPtr make(int line, Expression::Node node) {
  return std::make_unique<Expression>(Expression{line, std::move(node)});
}

ExpressionPtr literal(int line, Value value) {
  return make(line, Literal{std::move(value)});
}

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
    return make(line, TupleDisplay{std::move(items)});
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
    expression =
        make(line, Conditional{std::move(condition), std::move(expression), std::move(otherwise)});
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
  return make(line, Logical{is_and, std::move(operands)});
}

Result<ExpressionPtr> ExpressionParser::parse_not() {
  if (!tokens_.at_name("not")) {
    return parse_comparison();
  }
  const DepthGuard guard(depth_);
  HEARTH_TRY(check_chain(0));
  const int line = tokens_.take().line;
  HEARTH_ASSIGN(auto operand, parse_not());
  return make(line, Unary{Unary::Operator::logical_not, std::move(operand)});
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
  return make(line, std::move(compare));
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
  return make(line, std::move(binary));
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
  return make(line, Concatenation{std::move(operands)});
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
    expression = make(line, Unary{op, std::move(operand)});
  } else {
    HEARTH_ASSIGN(expression, parse_primary());
  }
  HEARTH_ASSIGN(expression, parse_postfix(std::move(expression)));
  return takes_filters ? parse_filters_and_tests(std::move(expression))
                       : Result<ExpressionPtr>(std::move(expression));
}

Result<ExpressionPtr> ExpressionParser::parse_primary() {
  const int line = tokens_.line();
  switch (tokens_.current().kind) {
    case TokenKind::name:
      return parse_name();
    case TokenKind::integer:
      return literal(line, Value(std::get<std::int64_t>(tokens_.take().number), Origin::trusted));
    case TokenKind::real:
      return literal(line, Value(std::get<double>(tokens_.take().number), Origin::trusted));
    case TokenKind::string: {
      std::string text;
      while (tokens_.at(TokenKind::string)) {  // neighbours are one string, as in Python
        text += tokens_.take().text;
      }
      return literal(line, Value(std::move(text), Origin::trusted));
    }
    default:
      break;
  }
  if (tokens_.at_symbol("(")) {
    return parse_parenthesized();
  }
  if (tokens_.at_symbol("[")) {
    return parse_list();
  }
  return tokens_.at_symbol("{") ? parse_dict() : tokens_.unexpected("an expression");
}

Result<ExpressionPtr> ExpressionParser::parse_name() {
  const Token& token = tokens_.take();
  const std::string& name = token.text;
  if (name == "true" || name == "True" || name == "false" || name == "False") {
    return literal(token.line, Value::trusted(name == "true" || name == "True"));
  }
  if (name == "none" || name == "None") {
    return literal(token.line, Value::none(Origin::trusted));
  }
  return make(token.line, Name{name});
}

Result<ExpressionPtr> ExpressionParser::parse_parenthesized() {
  const int line = tokens_.take().line;
  if (tokens_.skip_symbol(")")) {
    return make(line, TupleDisplay{});
  }
  HEARTH_ASSIGN(auto inner, parse_tuple());
  HEARTH_TRY(tokens_.expect_symbol(")"));
  return inner;
}

Result<ExpressionPtr> ExpressionParser::parse_list() {
  const int line = tokens_.take().line;
  std::vector<ExpressionPtr> items;
  while (!tokens_.skip_symbol("]")) {
    HEARTH_ASSIGN(auto item, parse_expression());
    items.push_back(std::move(item));
    if (!tokens_.at_symbol("]")) {
      HEARTH_TRY(tokens_.expect_symbol(","));
    }
  }
  return make(line, ListDisplay{std::move(items)});
}

Result<ExpressionPtr> ExpressionParser::parse_dict() {
  const int line = tokens_.take().line;
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries;
  while (!tokens_.skip_symbol("}")) {
    HEARTH_ASSIGN(auto key, parse_expression());
    HEARTH_TRY(tokens_.expect_symbol(":"));
    HEARTH_ASSIGN(auto value, parse_expression());
    entries.emplace_back(std::move(key), std::move(value));
    if (!tokens_.at_symbol("}")) {
      HEARTH_TRY(tokens_.expect_symbol(","));
    }
  }
  return make(line, DictDisplay{std::move(entries)});
}

Result<ExpressionPtr> ExpressionParser::parse_postfix(ExpressionPtr expression) {
  for (int length = 0;; ++length) {
    HEARTH_TRY(check_chain(length));
    const int line = tokens_.line();
    if (tokens_.skip_symbol(".")) {
      HEARTH_ASSIGN(expression, parse_dot(std::move(expression)));
    } else if (tokens_.skip_symbol("[")) {
      HEARTH_ASSIGN(expression, parse_subscript(std::move(expression)));
    } else if (tokens_.at_symbol("(")) {
      HEARTH_ASSIGN(auto arguments, parse_call_arguments());
      expression = make(line, Call{std::move(expression), std::move(arguments)});
    } else {
      return expression;
    }
  }
}

Result<ExpressionPtr> ExpressionParser::parse_filters_and_tests(ExpressionPtr expression) {
  for (int length = 0;; ++length) {
    HEARTH_TRY(check_chain(length));
    const int line = tokens_.line();
    if (tokens_.skip_symbol("|")) {
      HEARTH_ASSIGN(expression, parse_filter(std::move(expression)));
    } else if (tokens_.skip_name("is")) {
      HEARTH_ASSIGN(expression, parse_test(std::move(expression)));
    } else if (tokens_.at_symbol("(")) {
      HEARTH_ASSIGN(auto arguments, parse_call_arguments());
      expression = make(line, Call{std::move(expression), std::move(arguments)});
    } else {
      return expression;
    }
  }
}

Result<ExpressionPtr> ExpressionParser::parse_filters(ExpressionPtr subject) {
  for (int length = 0; tokens_.skip_symbol("|"); ++length) {
    HEARTH_TRY(check_chain(length));
    HEARTH_ASSIGN(subject, parse_filter(std::move(subject)));
  }
  return subject;
}

Result<ExpressionPtr> ExpressionParser::parse_filter(ExpressionPtr subject) {
  const int line = tokens_.line();
  HEARTH_ASSIGN(auto name, parse_dotted_name());
  CallArguments arguments;
  if (tokens_.at_symbol("(")) {
    HEARTH_ASSIGN(arguments, parse_call_arguments());
  }
  return make(line, FilterCall{std::move(subject), std::move(name), std::move(arguments)});
}

Result<std::string> ExpressionParser::parse_dotted_name() {
  HEARTH_ASSIGN(auto name, tokens_.take_identifier());
  while (tokens_.skip_symbol(".")) {
    HEARTH_ASSIGN(const auto part, tokens_.take_identifier());
    name += "." + part;
  }
  return name;
}

bool ExpressionParser::starts_test_argument() const {
  switch (tokens_.current().kind) {
    case TokenKind::name:
      return !tokens_.at_name("else") && !tokens_.at_name("or") && !tokens_.at_name("and");
    case TokenKind::string:
    case TokenKind::integer:
    case TokenKind::real:
      return true;
    default:
      return tokens_.at_symbol("[") || tokens_.at_symbol("{");
  }
}

Result<ExpressionPtr> ExpressionParser::parse_test(ExpressionPtr subject) {
  const int line = tokens_.line();
  const bool is_negated = tokens_.skip_name("not");
  HEARTH_ASSIGN(auto name, parse_dotted_name());
  CallArguments arguments;
  if (tokens_.at_symbol("(")) {
    HEARTH_ASSIGN(arguments, parse_call_arguments());
  } else if (tokens_.at_name("is")) {
    return TokenStream::error(tokens_.line(), "tests cannot be chained with 'is'");
  } else if (starts_test_argument()) {
    HEARTH_ASSIGN(auto argument, parse_primary());
    HEARTH_ASSIGN(argument, parse_postfix(std::move(argument)));
    arguments.positional.push_back(std::move(argument));
  }
  auto test = make(line, TestCall{std::move(subject), std::move(name), std::move(arguments)});
  return is_negated ? make(line, Unary{Unary::Operator::logical_not, std::move(test)})
                    : std::move(test);
}

Result<ExpressionPtr> ExpressionParser::parse_dot(ExpressionPtr object) {
  const int line = tokens_.line();
  if (tokens_.at(TokenKind::integer)) {  // items.0 is items[0]
    const auto index = std::get<std::int64_t>(tokens_.take().number);
    return make(line, Subscript{std::move(object), literal(line, Value::trusted(index))});
  }
  HEARTH_ASSIGN(auto name, tokens_.take_identifier());
  return make(line, Attribute{std::move(object), std::move(name)});
}

Result<ExpressionPtr> ExpressionParser::parse_subscript(ExpressionPtr object) {
  const int line = tokens_.line();
  std::array<ExpressionPtr, 3> bounds;  // begin, end, step
  std::size_t n_colons = 0;
  while (!tokens_.at_symbol("]")) {
    if (tokens_.skip_symbol(":")) {
      if (++n_colons > 2) {
        return TokenStream::error(line, "a slice has at most two ':'");
      }
    } else if (!bounds[n_colons]) {
      HEARTH_ASSIGN(bounds[n_colons], parse_expression());
    } else {
      return tokens_.unexpected("]");
    }
  }
  HEARTH_TRY(tokens_.expect_symbol("]"));
  auto& [begin, end, step] = bounds;
  if (n_colons > 0) {
    return make(line, Slice{std::move(object), std::move(begin), std::move(end), std::move(step)});
  }
  if (!begin) {
    return TokenStream::error(line, "a subscript needs a key");
  }
  return make(line, Subscript{std::move(object), std::move(begin)});
}

Result<CallArguments> ExpressionParser::parse_call_arguments() {
  HEARTH_TRY(tokens_.expect_symbol("("));
  CallArguments arguments;
  while (!tokens_.skip_symbol(")")) {
    HEARTH_TRY(parse_call_argument(arguments));
    if (!tokens_.at_symbol(")")) {
      HEARTH_TRY(tokens_.expect_symbol(","));
    }
  }
  return arguments;
}

Result<void> ExpressionParser::parse_call_argument(CallArguments& arguments) {
  const bool is_keyword =
      tokens_.at(TokenKind::name) && TokenStream::is(tokens_.next(), TokenKind::symbol, "=");
  std::string keyword;
  ExpressionPtr* star = nullptr;
  if (is_keyword) {
    keyword = tokens_.take().text;
    tokens_.take();
  } else if (tokens_.skip_symbol("*")) {
    star = &arguments.star;
  } else if (tokens_.skip_symbol("**")) {
    star = &arguments.double_star;
  } else if (!arguments.keyword.empty() || arguments.star || arguments.double_star) {
    return TokenStream::error(tokens_.line(), "positional arguments come first");
  }
  HEARTH_ASSIGN(auto value, parse_expression());
  if (is_keyword) {
    arguments.keyword.emplace_back(std::move(keyword), std::move(value));
  } else if (!star) {
    arguments.positional.push_back(std::move(value));
  } else if (!*star) {
    *star = std::move(value);
  } else {
    return TokenStream::error(tokens_.line(), "'*' or '**' is given twice");
  }
  return {};
}

}  // namespace hearth::chat
