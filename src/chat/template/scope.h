#pragma once
/// Variables of a template while it runs.

#include <cstddef>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "chat/template/value.h"

namespace hearth::chat {

/// One level of names: the template, a loop iteration, a macro call, a block. Names belong to the
/// syntax tree. Assignments go to the innermost level, so they end with their loop or macro, as in
/// Jinja.
class Scope {
 public:
  explicit Scope(std::shared_ptr<Scope> parent) : parent_(std::move(parent)) {}

  [[nodiscard]] const Value* find(std::string_view name) const {
    for (const Scope* scope = this; scope; scope = scope->parent_.get()) {
      if (const auto at = scope->variables_.find(name); at != scope->variables_.end()) {
        return &at->second;
      }
    }
    return nullptr;
  }
  void set(std::string_view name, Value value) {
    variables_.insert_or_assign(name, std::move(value));
  }

  /// Marks this level and those around it as kept by a macro, so that they may outlive their block.
  /// Returns how many variables become so.
  std::size_t capture() {
    std::size_t n = 0;
    for (Scope* scope = this; scope && !scope->is_captured_; scope = scope->parent_.get()) {
      scope->is_captured_ = true;
      n += scope->variables_.size();
    }
    return n;
  }
  [[nodiscard]] bool is_captured() const { return is_captured_; }

 private:
  std::shared_ptr<Scope> parent_;
  std::map<std::string_view, Value> variables_;
  bool is_captured_ = false;
};

}  // namespace hearth::chat
