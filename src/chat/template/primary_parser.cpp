/// Names, literals, displays and what follows them: subscripts, calls, filters and tests.
#include <array>
#include <utility>

#include "chat/template/expression_parser.h"

namespace hearth::chat {
namespace {

ExpressionPtr literal(int line, Value value) {
  return make_expression(line, Literal{std::move(value)});
}

}  // namespace

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
  return make_expression(token.line, Name{name});
}

Result<ExpressionPtr> ExpressionParser::parse_parenthesized() {
  const int line = tokens_.take().line;
  if (tokens_.skip_symbol(")")) {
    return make_expression(line, TupleDisplay{});
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
  return make_expression(line, ListDisplay{std::move(items)});
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
  return make_expression(line, DictDisplay{std::move(entries)});
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
      expression = make_expression(line, Call{std::move(expression), std::move(arguments)});
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
      expression = make_expression(line, Call{std::move(expression), std::move(arguments)});
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
  return make_expression(line,
                         FilterCall{std::move(subject), std::move(name), std::move(arguments)});
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
  auto test =
      make_expression(line, TestCall{std::move(subject), std::move(name), std::move(arguments)});
  return is_negated ? make_expression(line, Unary{Unary::Operator::logical_not, std::move(test)})
                    : std::move(test);
}

Result<ExpressionPtr> ExpressionParser::parse_dot(ExpressionPtr object) {
  const int line = tokens_.line();
  if (tokens_.at(TokenKind::integer)) {  // items.0 is items[0]
    const auto index = std::get<std::int64_t>(tokens_.take().number);
    return make_expression(line,
                           Subscript{std::move(object), literal(line, Value::trusted(index))});
  }
  HEARTH_ASSIGN(auto name, tokens_.take_identifier());
  return make_expression(line, Attribute{std::move(object), std::move(name)});
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
    return make_expression(
        line, Slice{std::move(object), std::move(begin), std::move(end), std::move(step)});
  }
  if (!begin) {
    return TokenStream::error(line, "a subscript needs a key");
  }
  return make_expression(line, Subscript{std::move(object), std::move(begin)});
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
