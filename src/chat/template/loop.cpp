#include "chat/template/loop.h"

#include <array>
#include <memory>

#include "base/fail.h"
#include "chat/template/compare.h"

namespace hearth::chat {
namespace {

/// loop.cycle and loop.changed before they are called.
class LoopMethod final : public Object {
 public:
  using Method = Result<Value> (*)(LoopVariable&, Runtime&, const Arguments&);

  LoopMethod(std::shared_ptr<LoopVariable> loop, Method method)
      : loop_(std::move(loop)), method_(method) {}

  [[nodiscard]] std::string_view kind() const override { return "method"; }
  [[nodiscard]] bool is_callable() const override { return true; }
  Result<Value> call(Runtime& runtime, const Arguments& arguments) override {
    return method_(*loop_, runtime, arguments);
  }

 private:
  std::shared_ptr<LoopVariable> loop_;
  Method method_;
};

Result<Value> call_cycle(LoopVariable& loop, Runtime& /*runtime*/, const Arguments& arguments) {
  return loop.cycle(arguments);
}

Result<Value> call_changed(LoopVariable& loop, Runtime& runtime, const Arguments& arguments) {
  return loop.changed(runtime, arguments);
}

}  // namespace

Value LoopVariable::item(std::int64_t at, std::string_view which) const {
  const auto& items = items_.as_list()->items;
  return at >= 0 && at < static_cast<std::int64_t>(items.size())
             ? items[static_cast<std::size_t>(at)]
             : Value::undefined(format("there is no {} item", which));
}

std::optional<Value> LoopVariable::attribute(std::string_view name) const {
  if (name == "previtem") {
    return item(at_ - 1, "previous");
  }
  if (name == "nextitem") {
    return item(at_ + 1, "next");
  }
  if (name == "cycle" || name == "changed") {
    const auto self = std::const_pointer_cast<LoopVariable>(shared_from_this());
    return Value(std::make_shared<LoopMethod>(self, name == "cycle" ? call_cycle : call_changed));
  }
  const auto n = static_cast<std::int64_t>(items_.as_list()->items.size());
  struct Number {
    std::string_view name;
    std::int64_t value;
  };
  const std::array numbers{
      Number{"index0", at_},       Number{"index", at_ + 1}, Number{"revindex0", n - at_ - 1},
      Number{"revindex", n - at_}, Number{"length", n},      Number{"depth0", depth_},
      Number{"depth", depth_ + 1}};
  for (const Number& number : numbers) {
    if (number.name == name) {
      return Value::trusted(number.value);
    }
  }
  if (name == "first" || name == "last") {
    return Value::trusted(at_ == (name == "first" ? 0 : n - 1));
  }
  return std::nullopt;
}

Result<Value> LoopVariable::call(Runtime& /*runtime*/, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound, bind_arguments("loop", arguments, {"iterable"}, 1));
  if (!recursion_) {
    return fail(ErrorCode::invalid_file, "loop() needs a running {{% for ... recursive %}}");
  }
  return recursion_(bound[0]);
}

void LoopVariable::release() {
  items_ = Value(List{});
  recursion_ = nullptr;
  last_changed_.reset();
}

Result<Value> LoopVariable::cycle(const Arguments& arguments) const {
  if (arguments.positional.empty()) {
    return fail(ErrorCode::invalid_file, "loop.cycle() needs arguments");
  }
  return arguments.positional[static_cast<std::size_t>(at_) % arguments.positional.size()];
}

Result<Value> LoopVariable::changed(Runtime& runtime, const Arguments& arguments) {
  HEARTH_ASSIGN(auto values, runtime.make_tuple(arguments.positional));
  bool is_same = false;
  if (last_changed_) {
    HEARTH_ASSIGN(is_same, equal(runtime.budget(), *last_changed_, values));
  }
  last_changed_ = std::move(values);
  return Value::trusted(!is_same);
}

}  // namespace hearth::chat
