#pragma once
/// The global functions of chat templates: range, dict, namespace, raise_exception, strftime_now,
/// joiner.

#include <string_view>

#include "base/result.h"
#include "chat/template/runtime.h"

namespace hearth::chat {

/// A function with a fixed implementation.
class NativeFunction final : public Object {
 public:
  using Implementation = Result<Value> (*)(Runtime&, const Arguments&);

  explicit NativeFunction(Implementation implementation) : implementation_(implementation) {}

  [[nodiscard]] std::string_view kind() const override { return "function"; }
  [[nodiscard]] bool is_callable() const override { return true; }
  Result<Value> call(Runtime& runtime, const Arguments& arguments) override {
    return implementation_(runtime, arguments);
  }

 private:
  Implementation implementation_;
};

/// The global function `name`, or null.
[[nodiscard]] NativeFunction::Implementation find_function(std::string_view name);

}  // namespace hearth::chat
