/// The evaluator's expressions; statements.cpp has its statements.
#include <memory>
#include <utility>

#include "base/fail.h"
#include "chat/template/compare.h"
#include "chat/template/evaluator.h"
#include "chat/template/filters.h"
#include "chat/template/functions.h"
#include "chat/template/lookup.h"
#include "chat/template/operators.h"
#include "chat/template/print.h"
#include "chat/template/sequence.h"
#include "chat/template/tests.h"

namespace hearth::chat {

Result<Value> Evaluator::evaluate(const Expression& expression) {
  return step<Value>(expression.line, [&] {
    return std::visit([&](const auto& node) { return evaluate_node(node); }, expression.node);
  });
}

Result<Value> Evaluator::evaluate_or_none(const ExpressionPtr& expression) {
  return expression ? evaluate(*expression) : Result<Value>(Value());
}

Result<std::vector<Value>> Evaluator::evaluate_all(const std::vector<ExpressionPtr>& expressions) {
  std::vector<Value> values;
  for (const ExpressionPtr& expression : expressions) {
    HEARTH_ASSIGN(auto value, evaluate(*expression));
    values.push_back(std::move(value));
  }
  return values;
}

Result<Arguments> Evaluator::evaluate_arguments(const CallArguments& arguments) {
  Arguments evaluated;
  HEARTH_ASSIGN(evaluated.positional, evaluate_all(arguments.positional));
  for (const auto& [name, expression] : arguments.keyword) {
    HEARTH_ASSIGN(auto value, evaluate(*expression));
    evaluated.keyword.emplace_back(name, std::move(value));
  }
  if (arguments.star) {
    HEARTH_ASSIGN(const Value star, evaluate(*arguments.star));
    HEARTH_ASSIGN(const Value list, to_list(runtime_, star));
    const auto& items = list.as_list()->items;
    evaluated.positional.insert(evaluated.positional.end(), items.begin(), items.end());
  }
  if (arguments.double_star) {
    HEARTH_ASSIGN(const Value star, evaluate(*arguments.double_star));
    if (!star.as_dict()) {
      return fail(ErrorCode::invalid_file, "'**' needs a mapping, found '{}'", star.type_name());
    }
    for (const auto& [key, value] : star.as_dict()->entries()) {
      HEARTH_ASSIGN(const Value name, to_string(runtime_, key));
      evaluated.keyword.emplace_back(name.as_text()->bytes(), value);
    }
  }
  HEARTH_TRY(runtime_.budget().spend_list(evaluated.positional.size() + evaluated.keyword.size()));
  return evaluated;
}

Result<Value> Evaluator::evaluate_node(const Literal& node) {
  return node.value;
}

Result<Value> Evaluator::evaluate_node(const Name& node) {
  if (const Value* variable = scope_->find(node.name)) {
    return *variable;
  }
  if (const Value* variable = context_.find_name(node.name)) {
    return *variable;
  }
  HEARTH_TRY(runtime_.budget().spend_objects());
  if (const auto function = find_function(node.name)) {
    return Value(std::make_shared<NativeFunction>(function));
  }
  return Value::undefined(format("'{}' is undefined", node.name));
}

Result<Value> Evaluator::evaluate_node(const TupleDisplay& node) {
  HEARTH_ASSIGN(auto items, evaluate_all(node.items));
  return runtime_.make_tuple(std::move(items));
}

Result<Value> Evaluator::evaluate_node(const ListDisplay& node) {
  HEARTH_ASSIGN(auto items, evaluate_all(node.items));
  return runtime_.make_list(std::move(items));
}

Result<Value> Evaluator::evaluate_node(const DictDisplay& node) {
  Dict dict;
  for (const auto& [key_expression, value_expression] : node.entries) {
    HEARTH_ASSIGN(const Value key, evaluate(*key_expression));
    HEARTH_ASSIGN(auto value, evaluate(*value_expression));
    if (!Dict::is_key(key)) {
      return fail(ErrorCode::invalid_file, "a value of type '{}' cannot be a key", key.type_name());
    }
    HEARTH_TRY(spend_lookup(runtime_.budget(), key));
    dict.set(key, std::move(value));
  }
  return runtime_.make_dict(std::move(dict));
}

Result<Value> Evaluator::evaluate_node(const Attribute& node) {
  HEARTH_ASSIGN(const Value object, evaluate(*node.object));
  return get_attribute(runtime_, object, node.name);
}

Result<Value> Evaluator::evaluate_node(const Subscript& node) {
  HEARTH_ASSIGN(const Value object, evaluate(*node.object));
  HEARTH_ASSIGN(const Value key, evaluate(*node.key));
  return get_item(runtime_, object, key);
}

Result<Value> Evaluator::evaluate_node(const Slice& node) {
  HEARTH_ASSIGN(const Value object, evaluate(*node.object));
  HEARTH_ASSIGN(const Value begin, evaluate_or_none(node.begin));
  HEARTH_ASSIGN(const Value end, evaluate_or_none(node.end));
  HEARTH_ASSIGN(const Value step, evaluate_or_none(node.step));
  return slice(runtime_, object, begin, end, step);
}

Result<Value> Evaluator::evaluate_node(const Call& node) {
  HEARTH_ASSIGN(const Value callee, evaluate(*node.callee));
  HEARTH_ASSIGN(const Arguments arguments, evaluate_arguments(node.arguments));
  return runtime_.call(callee, arguments);
}

Result<Value> Evaluator::evaluate_node(const FilterCall& node) {
  HEARTH_ASSIGN(const Value subject,
                node.subject ? evaluate(*node.subject) : Result<Value>(filter_input_));
  HEARTH_ASSIGN(const Arguments arguments, evaluate_arguments(node.arguments));
  return apply_filter(runtime_, node.name, subject, arguments);
}

Result<Value> Evaluator::evaluate_node(const TestCall& node) {
  HEARTH_ASSIGN(const Value subject, evaluate(*node.subject));
  HEARTH_ASSIGN(const Arguments arguments, evaluate_arguments(node.arguments));
  HEARTH_ASSIGN(const bool passes, apply_test(runtime_, node.name, subject, arguments));
  return Value::trusted(passes);
}

Result<Value> Evaluator::evaluate_node(const Unary& node) {
  HEARTH_ASSIGN(const Value operand, evaluate(*node.operand));
  switch (node.op) {
    case Unary::Operator::logical_not:
      return Value::trusted(!operand.is_truthy());
    case Unary::Operator::minus:
      return negate(operand);
    case Unary::Operator::plus:
      break;
  }
  if (!operand.is_number()) {
    return fail(ErrorCode::invalid_file, "a value of type '{}' has no sign", operand.type_name());
  }
  return operand.as_bool() ? Value(*operand.to_integer(), operand.origin()) : operand;
}

Result<Value> Evaluator::evaluate_node(const Binary& node) {
  HEARTH_ASSIGN(Value value, evaluate(*node.first));
  for (const auto& [op, expression] : node.rest) {
    HEARTH_ASSIGN(const Value operand, evaluate(*expression));
    HEARTH_ASSIGN(value, apply_binary(runtime_, op, value, operand));
  }
  return value;
}

Result<Value> Evaluator::evaluate_node(const Concatenation& node) {
  TextWriter text(runtime_.budget());
  for (const ExpressionPtr& expression : node.operands) {
    HEARTH_ASSIGN(const Value operand, evaluate(*expression));
    HEARTH_TRY(write_str(text, operand));
  }
  return text.take_value();
}

Result<bool> Evaluator::compare(Comparison op, const Value& a, const Value& b) {
  Budget& budget = runtime_.budget();
  const auto negated = [](bool holds) { return !holds; };
  switch (op) {
    case Comparison::eq:
      return equal(budget, a, b);
    case Comparison::ne:
      return equal(budget, a, b).transform(negated);
    case Comparison::lt:
      return less(budget, a, b);
    case Comparison::le:
      return less(budget, b, a).transform(negated);
    case Comparison::gt:
      return less(budget, b, a);
    case Comparison::ge:
      return less(budget, a, b).transform(negated);
    case Comparison::in:
      return contains(budget, b, a);
    case Comparison::not_in:
      break;
  }
  return contains(budget, b, a).transform(negated);
}

Result<Value> Evaluator::evaluate_node(const Compare& node) {
  HEARTH_ASSIGN(Value left, evaluate(*node.first));
  for (const auto& [op, expression] : node.rest) {
    HEARTH_ASSIGN(Value right, evaluate(*expression));
    HEARTH_ASSIGN(const bool holds, compare(op, left, right));
    if (!holds) {
      return Value::trusted(false);
    }
    left = std::move(right);
  }
  return Value::trusted(true);
}

Result<Value> Evaluator::evaluate_node(const Logical& node) {
  Value value;
  for (const ExpressionPtr& expression : node.operands) {
    HEARTH_ASSIGN(value, evaluate(*expression));
    if (value.is_truthy() != node.is_and) {
      break;
    }
  }
  return value;
}

Result<Value> Evaluator::evaluate_node(const Conditional& node) {
  HEARTH_ASSIGN(const Value condition, evaluate(*node.condition));
  if (condition.is_truthy()) {
    return evaluate(*node.then);
  }
  if (!node.otherwise) {
    return Value::undefined("the inline 'if' was false and has no 'else'");
  }
  return evaluate(*node.otherwise);
}

}  // namespace hearth::chat
