#pragma once
/// What every function of the interpreter shares during one render: limits, the clock, the objects
/// made so far.

#include <chrono>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chat/template/arguments.h"
#include "chat/template/limits.h"
#include "chat/template/value.h"

namespace hearth::chat {

/// One render's state. One thread at a time.
class Runtime {
 public:
  Runtime(const Limits& limits, std::chrono::local_seconds now) : budget_(limits), now_(now) {}
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  /// Empties every adopted object first: templates can build cycles of namespaces and macros.
  ~Runtime();

  [[nodiscard]] Budget& budget() { return budget_; }
  [[nodiscard]] std::chrono::local_seconds now() const { return now_; }

  /// Takes care of an object that can come to hold itself. Errors: out_of_memory.
  Result<Value> adopt(std::shared_ptr<Object> object);

  /// Errors: invalid_file when `callee` is not callable or nests calls too deep; whatever the call
  /// returns.
  Result<Value> call(const Value& callee, const Arguments& arguments);

  /// Runs `function` one level of calls deeper. Errors: out_of_memory when that is too deep.
  template <class Function>
  Result<Value> nested(Function function) {
    HEARTH_TRY(check_nesting());
    ++n_nested_calls_;
    auto result = function();
    --n_nested_calls_;
    return result;
  }

  /// A list or dict made by the template. Errors: out_of_memory when it is too long or nests too
  /// deep.
  Result<Value> make_list(std::vector<Value> items, ListKind kind = ListKind::list);
  Result<Value> make_tuple(std::vector<Value> items) {
    return make_list(std::move(items), ListKind::tuple);
  }
  Result<Value> make_dict(Dict dict);
  /// Counts the entries of a dict that becomes part of an object. Errors: out_of_memory.
  Result<void> lease_entries(Dict& dict);

 private:
  Result<void> check_nesting() const;

  Budget budget_;
  std::chrono::local_seconds now_;
  std::vector<std::shared_ptr<Object>> objects_;
  int n_nested_calls_ = 0;
};

/// Builds text within the budget; the only way the interpreter makes text.
class TextWriter {
 public:
  explicit TextWriter(Budget& budget) : budget_(budget) {}

  /// For a value about to be written that has `n_bytes` of text.
  Result<void> spend_value(std::size_t n_bytes = 0) { return budget_.spend_scan(n_bytes); }

  Result<void> append(std::string_view bytes, Origin origin);
  Result<void> append(const Text& text) { return append(text, 0, text.size()); }
  Result<void> append(const Text& text, std::size_t begin, std::size_t end);
  /// Everything appended so far; the writer is empty afterwards. Errors: out_of_memory.
  Result<Text> take();
  Result<Value> take_value();

 private:
  Result<void> reserve(std::size_t n_bytes);

  Budget& budget_;
  TextBuilder builder_;
};

}  // namespace hearth::chat
