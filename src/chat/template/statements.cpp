/// The evaluator's statements; expressions.cpp has its expressions.
#include <memory>
#include <utility>

#include "base/fail.h"
#include "chat/template/evaluator.h"
#include "chat/template/filters.h"
#include "chat/template/loop.h"
#include "chat/template/print.h"
#include "chat/template/sequence.h"

namespace hearth::chat {

/// Makes `scope` the innermost one while it lives.
class Evaluator::ScopeGuard {
 public:
  ScopeGuard(Evaluator& evaluator, std::shared_ptr<Scope> scope)
      : evaluator_(evaluator), outer_(std::exchange(evaluator.scope_, std::move(scope))) {}
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;
  ~ScopeGuard() { evaluator_.scope_ = std::move(outer_); }

 private:
  Evaluator& evaluator_;
  std::shared_ptr<Scope> outer_;
};

/// What a {% macro %}, or the body of a {% call %} block, is made of.
struct Evaluator::MacroDefinition {
  std::string_view name;
  const std::vector<Parameter>& parameters;
  const Body& body;
  std::shared_ptr<Scope> closure;  // the variables of the place where it is defined
};

class Evaluator::MacroFunction final : public Object {
 public:
  MacroFunction(Evaluator& evaluator, MacroDefinition definition)
      : evaluator_(evaluator), definition_(std::move(definition)) {}

  [[nodiscard]] std::string_view kind() const override { return "macro"; }
  [[nodiscard]] bool is_callable() const override { return true; }
  Result<Value> call(Runtime& /*runtime*/, const Arguments& arguments) override {
    return evaluator_.call_macro(definition_, arguments);
  }
  [[nodiscard]] std::optional<Value> attribute(std::string_view name) const override {
    return name == "name" ? std::optional(Value(std::string(definition_.name), Origin::trusted))
                          : std::nullopt;
  }
  void release() override { definition_.closure.reset(); }

 private:
  Evaluator& evaluator_;
  MacroDefinition definition_;
};

Evaluator::Evaluator(Runtime& runtime, const Dict& context)
    : runtime_(runtime), context_(context), scope_(std::make_shared<Scope>(nullptr)) {}

Result<Text> Evaluator::run(const Body& body) {
  auto text = capture_here(body);
  const bool is_own_message = !text && text.error().code == ErrorCode::invalid_argument;
  if (text || is_own_message || error_line_ == 0) {
    return text;
  }
  return fail(text.error().code, "chat template line {}: {}", error_line_, text.error().message);
}

Result<Text> Evaluator::capture_here(const Body& body) {
  TextWriter writer(runtime_.budget());
  TextWriter* outer = std::exchange(out_, &writer);
  const auto flow = execute(body);
  out_ = outer;
  HEARTH_TRY(flow);
  return writer.take();
}

Result<Text> Evaluator::capture(const Body& body, std::shared_ptr<Scope> parent) {
  const ScopeGuard guard(*this, std::make_shared<Scope>(std::move(parent)));
  return capture_here(body);
}

Result<Evaluator::Flow> Evaluator::execute(const Body& body) {
  for (const Statement& statement : body) {
    HEARTH_ASSIGN(const Flow flow, execute_statement(statement));
    if (flow != Flow::normal) {
      return flow;
    }
  }
  return Flow::normal;
}

Result<Evaluator::Flow> Evaluator::execute_statement(const Statement& statement) {
  return step<Flow>(statement.line, [&] {
    return std::visit([&](const auto& node) { return execute_node(node); }, statement.node);
  });
}

Result<Evaluator::Flow> Evaluator::execute_node(const Data& node) {
  HEARTH_TRY(out_->append(node.text));
  return Flow::normal;
}

Result<Evaluator::Flow> Evaluator::execute_node(const Output& node) {
  for (const ExpressionPtr& expression : node.expressions) {
    HEARTH_ASSIGN(const Value value, evaluate(*expression));
    HEARTH_TRY(write_str(*out_, value));
  }
  return Flow::normal;
}

Result<Evaluator::Flow> Evaluator::execute_node(const If& node) {
  for (const If::Branch& branch : node.branches) {
    HEARTH_ASSIGN(const Value condition, evaluate(*branch.condition));
    if (condition.is_truthy()) {
      return execute(branch.body);
    }
  }
  return execute(node.otherwise);
}

Result<Evaluator::Flow> Evaluator::execute_node(const For& node) {
  HEARTH_ASSIGN(const Value iterable, evaluate(*node.iterable));
  return run_loop(node, iterable, 0);
}

Result<Value> Evaluator::filtered_items(const For& node, const Value& iterable) {
  HEARTH_ASSIGN(Value list, to_list(runtime_, iterable));
  if (!node.filter) {
    return list;
  }
  std::vector<Value> kept;
  for (const Value& item : list.as_list()->items) {
    const ScopeGuard guard(*this, std::make_shared<Scope>(scope_));
    HEARTH_TRY(assign(node.target, item));
    HEARTH_ASSIGN(const Value condition, evaluate(*node.filter));
    if (condition.is_truthy()) {
      kept.push_back(item);
    }
  }
  return runtime_.make_list(std::move(kept));
}

Result<Evaluator::Flow> Evaluator::run_loop(const For& node, const Value& iterable,
                                            std::int64_t depth) {
  HEARTH_ASSIGN(Value list, filtered_items(node, iterable));
  const auto& items = list.as_list()->items;
  if (items.empty()) {
    const ScopeGuard guard(*this, std::make_shared<Scope>(scope_));
    return execute(node.otherwise);
  }
  LoopVariable::Recursion recursion;
  if (node.is_recursive) {
    recursion = [this, &node, depth](const Value& inner) -> Result<Value> {
      TextWriter writer(runtime_.budget());
      TextWriter* outer = std::exchange(out_, &writer);
      const auto flow = run_loop(node, inner, depth + 1);
      out_ = outer;
      HEARTH_TRY(flow);
      return writer.take_value();
    };
  }
  const auto loop = std::make_shared<LoopVariable>(list, depth, std::move(recursion));
  const LoopEnd end(*loop);
  for (const Value& item : items) {
    const ScopeGuard guard(*this, std::make_shared<Scope>(scope_));
    scope_->set("loop", Value(std::shared_ptr<Object>(loop)));
    HEARTH_TRY(assign(node.target, item));
    HEARTH_ASSIGN(const Flow flow, execute(node.body));
    if (flow == Flow::breaks) {
      break;
    }
    loop->advance();
  }
  return Flow::normal;
}

Result<Evaluator::Flow> Evaluator::execute_node(const Set& node) {
  HEARTH_ASSIGN(const Value value, evaluate(*node.value));
  HEARTH_TRY(assign(node.target, value));
  return Flow::normal;
}

Result<Evaluator::Flow> Evaluator::execute_node(const SetBlock& node) {
  HEARTH_ASSIGN(auto text, capture(node.body, scope_));
  HEARTH_ASSIGN(const Value value, filter_text(node.filter, std::move(text)));
  HEARTH_TRY(assign(node.target, value));
  return Flow::normal;
}

Result<Value> Evaluator::filter_text(const ExpressionPtr& filter, Text text) {
  if (!filter) {
    return Value(std::move(text));
  }
  Value outer = std::exchange(filter_input_, Value(std::move(text)));
  auto filtered = evaluate(*filter);
  filter_input_ = std::move(outer);
  return filtered;
}

Result<Evaluator::Flow> Evaluator::execute_node(const Macro& node) {
  HEARTH_TRY(runtime_.budget().spend_objects(scope_->capture()));
  HEARTH_ASSIGN(auto macro,
                runtime_.adopt(std::make_shared<MacroFunction>(
                    *this, MacroDefinition{node.name, node.parameters, node.body, scope_})));
  scope_->set(node.name, std::move(macro));
  return Flow::normal;
}

Result<Evaluator::Flow> Evaluator::execute_node(const CallBlock& node) {
  const Call& call = std::get<Call>(node.call->node);
  HEARTH_ASSIGN(const Value callee, evaluate(*call.callee));
  HEARTH_ASSIGN(auto arguments, evaluate_arguments(call.arguments));
  HEARTH_TRY(runtime_.budget().spend_objects(scope_->capture()));
  HEARTH_ASSIGN(auto caller,
                runtime_.adopt(std::make_shared<MacroFunction>(
                    *this, MacroDefinition{"caller", node.parameters, node.body, scope_})));
  arguments.keyword.emplace_back("caller", std::move(caller));
  HEARTH_ASSIGN(const Value value, runtime_.call(callee, arguments));
  HEARTH_TRY(write_str(*out_, value));
  return Flow::normal;
}

Result<Evaluator::Flow> Evaluator::execute_node(const FilterBlock& node) {
  HEARTH_ASSIGN(auto text, capture(node.body, scope_));
  HEARTH_ASSIGN(const Value value, filter_text(node.filter, std::move(text)));
  HEARTH_TRY(write_str(*out_, value));
  return Flow::normal;
}

Result<Evaluator::Flow> Evaluator::execute_node(const With& node) {
  std::vector<Value> values;
  for (const auto& [target, expression] : node.assignments) {
    HEARTH_ASSIGN(auto value, evaluate(*expression));
    values.push_back(std::move(value));
  }
  const ScopeGuard guard(*this, std::make_shared<Scope>(scope_));
  for (std::size_t i = 0; i < values.size(); ++i) {
    HEARTH_TRY(assign(node.assignments[i].first, values[i]));
  }
  return execute(node.body);
}

Result<Evaluator::Flow> Evaluator::execute_node(const Scoped& node) {
  const ScopeGuard guard(*this, std::make_shared<Scope>(scope_));
  return execute(node.body);
}

Result<Evaluator::Flow> Evaluator::execute_node(const Break& /*node*/) {
  return Flow::breaks;
}
Result<Evaluator::Flow> Evaluator::execute_node(const Continue& /*node*/) {
  return Flow::continues;
}

Result<void> Evaluator::assign(const Target& target, const Value& value) {
  if (!target.attribute.empty()) {
    const Value* holder = scope_->find(target.name);
    Object* object = holder ? holder->as_object() : nullptr;
    if (!object || !object->set_attribute(target.attribute, value)) {
      return fail(ErrorCode::invalid_file, "cannot assign '{}.{}': '{}' is not a namespace",
                  target.name, target.attribute, target.name);
    }
    return {};
  }
  if (target.items.empty()) {
    HEARTH_TRY(runtime_.budget().spend_objects(scope_->is_captured() ? 1 : 0));
    scope_->set(target.name, value);
    return {};
  }
  HEARTH_ASSIGN(const Value list, to_list(runtime_, value));
  const auto& items = list.as_list()->items;
  if (items.size() != target.items.size()) {
    return fail(ErrorCode::invalid_file, "cannot unpack {} values into {} names", items.size(),
                target.items.size());
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    HEARTH_TRY(assign(target.items[i], items[i]));
  }
  return {};
}

Result<Value> Evaluator::call_macro(const MacroDefinition& macro, const Arguments& arguments) {
  std::vector<std::string_view> names;
  for (const Parameter& parameter : macro.parameters) {
    names.push_back(parameter.name);
  }
  Arguments own = arguments;
  const auto scope = std::make_shared<Scope>(macro.closure);
  std::erase_if(own.keyword, [&](const auto& argument) {
    const bool is_caller = argument.first == "caller";
    if (is_caller) {
      scope->set("caller", argument.second);
    }
    return is_caller;
  });
  HEARTH_ASSIGN(const auto bound, bind_arguments(macro.name, own, names));
  const ScopeGuard guard(*this, scope);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool is_given = i < own.positional.size() || own.find_keyword(names[i]);
    const auto& default_value = macro.parameters[i].default_value;
    if (is_given || !default_value) {
      scope->set(names[i], bound[i]);
    } else {
      HEARTH_ASSIGN(auto value, evaluate(*default_value));
      scope->set(names[i], std::move(value));
    }
  }
  HEARTH_ASSIGN(auto text, capture_here(macro.body));
  return Value(std::move(text));
}

}  // namespace hearth::chat
