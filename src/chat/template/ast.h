#pragma once
/// The syntax tree of a chat template. Plain data; the evaluator gives it meaning.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "chat/template/value.h"

namespace hearth::chat {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> keyword;
  ExpressionPtr star;         // *args, may be null
  ExpressionPtr double_star;  // **kwargs, may be null
};

struct Literal {
  Value value;
};
struct Name {
  std::string name;
};
struct TupleDisplay {
  std::vector<ExpressionPtr> items;
};
struct ListDisplay {
  std::vector<ExpressionPtr> items;
};
struct DictDisplay {
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries;
};
struct Attribute {  // object.name
  ExpressionPtr object;
  std::string name;
};
struct Subscript {  // object[key]
  ExpressionPtr object;
  ExpressionPtr key;
};
struct Slice {  // object[begin:end:step], each may be null
  ExpressionPtr object;
  ExpressionPtr begin;
  ExpressionPtr end;
  ExpressionPtr step;
};
struct Call {
  ExpressionPtr callee;
  CallArguments arguments;
};
struct FilterCall {  // subject | name(arguments); the subject is null in {% filter %} and {% set |
                     // %}
  ExpressionPtr subject;
  std::string name;
  CallArguments arguments;
};
struct TestCall {  // subject is name(arguments)
  ExpressionPtr subject;
  std::string name;
  CallArguments arguments;
};
struct Unary {
  enum class Operator : std::uint8_t { plus, minus, logical_not } op;
  ExpressionPtr operand;
};
enum class BinaryOperator : std::uint8_t {
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power
};
struct Binary {  // first op1 operand1 op2 operand2 ..., from left to right
  ExpressionPtr first;
  std::vector<std::pair<BinaryOperator, ExpressionPtr>> rest;
};
struct Concatenation {  // a ~ b ~ c
  std::vector<ExpressionPtr> operands;
};
enum class Comparison : std::uint8_t { eq, ne, lt, le, gt, ge, in, not_in };
struct Compare {  // first op1 operand1 op2 operand2 ..., all must hold
  ExpressionPtr first;
  std::vector<std::pair<Comparison, ExpressionPtr>> rest;
};
struct Logical {  // a and b and c; the value of the operand that decides
  bool is_and;
  std::vector<ExpressionPtr> operands;
};
struct Conditional {  // then if condition else otherwise
  ExpressionPtr condition;
  ExpressionPtr then;
  ExpressionPtr otherwise;  // may be null
};

struct Expression {
  using Node = std::variant<Literal, Name, TupleDisplay, ListDisplay, DictDisplay, Attribute,
                            Subscript, Slice, Call, FilterCall, TestCall, Unary, Binary,
                            Concatenation, Compare, Logical, Conditional>;
  int line;
  Node node;
};

inline ExpressionPtr make_expression(int line, Expression::Node node) {
  return std::make_unique<Expression>(Expression{line, std::move(node)});
}

struct Statement;
using Body = std::vector<Statement>;

/// Where an assignment goes: a name, an attribute of a namespace, or several targets to unpack
/// into.
struct Target {
  int line = 0;
  std::string name;
  std::string attribute;      // of the namespace `name`; empty for a plain name
  std::vector<Target> items;  // not empty for a tuple
};

struct Parameter {
  std::string name;
  ExpressionPtr default_value;  // may be null
};

struct Data {
  Text text;
};
struct Output {
  std::vector<ExpressionPtr> expressions;
};
struct If {
  struct Branch {
    ExpressionPtr condition;
    Body body;
  };
  std::vector<Branch> branches;
  Body otherwise;
};
struct For {
  Target target;
  ExpressionPtr iterable;
  ExpressionPtr filter;  // may be null
  bool is_recursive = false;
  Body body;
  Body otherwise;
};
struct Set {
  Target target;
  ExpressionPtr value;
};
struct SetBlock {
  Target target;
  ExpressionPtr filter;  // a chain of FilterCall whose innermost subject is null; may be null
  Body body;
};
struct Macro {
  std::string name;
  std::vector<Parameter> parameters;
  Body body;
};
struct CallBlock {
  std::vector<Parameter> parameters;  // of caller()
  ExpressionPtr call;
  Body body;
};
struct FilterBlock {
  ExpressionPtr filter;  // as in SetBlock
  Body body;
};
struct With {
  std::vector<std::pair<Target, ExpressionPtr>> assignments;
  Body body;
};
struct Scoped {  // {% generation %}: a scope of its own and nothing else
  Body body;
};
struct Break {};
struct Continue {};

struct Statement {
  using Node = std::variant<Data, Output, If, For, Set, SetBlock, Macro, CallBlock, FilterBlock,
                            With, Scoped, Break, Continue>;
  int line;
  Node node;
};

}  // namespace hearth::chat
