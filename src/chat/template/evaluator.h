#pragma once
/// Runs the syntax tree of a template.

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "chat/template/ast.h"
#include "chat/template/runtime.h"
#include "chat/template/scope.h"

namespace hearth::chat {

/// One render of one template. The tree and the context must outlive it. One thread at a time.
class Evaluator {
 public:
  /// `context` holds the template's variables: messages, tools, add_generation_prompt, ...
  Evaluator(Runtime& runtime, const Dict& context);

  /// The text that `body` renders.
  /// Errors: invalid_argument with exactly the template's message when it calls raise_exception;
  /// invalid_file (or unsupported, out_of_memory) naming the line for everything else.
  Result<Text> run(const Body& body);

 private:
  enum class Flow : std::uint8_t { normal, breaks, continues };
  struct MacroDefinition;
  class MacroFunction;
  class ScopeGuard;

  Result<Flow> execute(const Body& body);
  Result<Flow> execute_statement(const Statement& statement);
  Result<Flow> execute_node(const Data& node);
  Result<Flow> execute_node(const Output& node);
  Result<Flow> execute_node(const If& node);
  Result<Flow> execute_node(const For& node);
  Result<Flow> execute_node(const Set& node);
  Result<Flow> execute_node(const SetBlock& node);
  Result<Flow> execute_node(const Macro& node);
  Result<Flow> execute_node(const CallBlock& node);
  Result<Flow> execute_node(const FilterBlock& node);
  Result<Flow> execute_node(const With& node);
  Result<Flow> execute_node(const Scoped& node);
  Result<Flow> execute_node(const Break& node);
  Result<Flow> execute_node(const Continue& node);

  /// The loop over what `iterable` holds; recursive loops call it again, one `depth` deeper.
  Result<Flow> run_loop(const For& node, const Value& iterable, std::int64_t depth);
  Result<Value> filtered_items(const For& node, const Value& iterable);
  Result<Value> call_macro(const MacroDefinition& macro, const Arguments& arguments);
  /// What `body` renders, in a scope of its own inside `parent`.
  Result<Text> capture(const Body& body, std::shared_ptr<Scope> parent);
  Result<Text> capture_here(const Body& body);
  Result<Value> filter_text(const ExpressionPtr& filter, Text text);
  Result<void> assign(const Target& target, const Value& value);

  Result<Value> evaluate(const Expression& expression);
  Result<Value> evaluate_or_none(const ExpressionPtr& expression);
  Result<std::vector<Value>> evaluate_all(const std::vector<ExpressionPtr>& expressions);
  Result<Arguments> evaluate_arguments(const CallArguments& arguments);
  Result<Value> evaluate_node(const Literal& node);
  Result<Value> evaluate_node(const Name& node);
  Result<Value> evaluate_node(const TupleDisplay& node);
  Result<Value> evaluate_node(const ListDisplay& node);
  Result<Value> evaluate_node(const DictDisplay& node);
  Result<Value> evaluate_node(const Attribute& node);
  Result<Value> evaluate_node(const Subscript& node);
  Result<Value> evaluate_node(const Slice& node);
  Result<Value> evaluate_node(const Call& node);
  Result<Value> evaluate_node(const FilterCall& node);
  Result<Value> evaluate_node(const TestCall& node);
  Result<Value> evaluate_node(const Unary& node);
  Result<Value> evaluate_node(const Binary& node);
  Result<Value> evaluate_node(const Concatenation& node);
  Result<Value> evaluate_node(const Compare& node);
  Result<Value> evaluate_node(const Logical& node);
  Result<Value> evaluate_node(const Conditional& node);
  Result<bool> compare(Comparison op, const Value& a, const Value& b);

  /// Spends a step and one level of depth; notes the line of the first error.
  template <class T, class Function>
  Result<T> step(int line, Function function);

  Runtime& runtime_;
  const Dict& context_;
  std::shared_ptr<Scope> scope_;
  TextWriter* out_ = nullptr;  // where statements write
  Value filter_input_;         // the text that a filter without subject applies to
  int depth_ = 0;
  int error_line_ = 0;  // where the first error came from; 0 before
};

template <class T, class Function>
Result<T> Evaluator::step(int line, Function function) {
  Result<T> result = [&]() -> Result<T> {
    HEARTH_TRY(runtime_.budget().spend_steps(1));
    HEARTH_TRY(runtime_.budget().check_depth(depth_));
    ++depth_;
    auto inner = function();
    --depth_;
    return inner;
  }();
  if (!result && error_line_ == 0) {
    error_line_ = line;
  }
  return result;
}

}  // namespace hearth::chat
