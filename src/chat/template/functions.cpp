#include "chat/template/functions.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/fail.h"
#include "chat/template/argument_types.h"
#include "chat/template/clock.h"
#include "chat/template/compare.h"
#include "chat/template/print.h"

namespace hearth::chat {
namespace {

/// What {% set ns.name = value %} writes to: the only thing a template can change.
class Namespace final : public Object {
 public:
  explicit Namespace(Dict attributes) : attributes_(std::move(attributes)) {}

  [[nodiscard]] std::string_view kind() const override { return "Namespace"; }
  [[nodiscard]] std::optional<Value> attribute(std::string_view name) const override {
    const Value* value = attributes_.find_name(name);
    return value ? std::optional(*value) : std::nullopt;
  }
  bool set_attribute(std::string_view name, Value value) override {
    attributes_.set(Value(std::string(name)), std::move(value));
    return true;
  }
  void release() override { attributes_ = Dict(); }

 private:
  Dict attributes_;
};

/// joiner(separator): nothing the first time it is called, then the separator.
class Joiner final : public Object {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}

  [[nodiscard]] std::string_view kind() const override { return "Joiner"; }
  [[nodiscard]] bool is_callable() const override { return true; }
  Result<Value> call(Runtime& /*runtime*/, const Arguments& arguments) override {
    HEARTH_TRY(bind_arguments("joiner", arguments, {}));
    return std::exchange(is_used_, true) ? separator_ : Value(Text());
  }
  void release() override { separator_ = Value(); }

 private:
  Value separator_;
  bool is_used_ = false;
};

/// How many integers start, start + step, ... lie before stop. Requires step != 0.
std::size_t range_length(std::int64_t start, std::int64_t stop, std::int64_t step) {
  const bool is_empty = step > 0 ? start >= stop : start <= stop;
  if (is_empty) {
    return 0;
  }
  const auto from = static_cast<std::uint64_t>(start);
  const auto to = static_cast<std::uint64_t>(stop);
  const auto stride = static_cast<std::uint64_t>(step);
  return step > 0 ? (to - from - 1) / stride + 1 : (from - to - 1) / (0 - stride) + 1;
}

Result<Value> range_function(Runtime& runtime, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound, bind_arguments("range", arguments, {"start", "stop", "step"}, 1));
  HEARTH_ASSIGN(const auto first, integer_or(bound[0], 0));
  const bool has_stop = !bound[1].is_undefined();
  HEARTH_ASSIGN(const auto stop, has_stop ? integer_or(bound[1], 0) : Result<std::int64_t>(first));
  HEARTH_ASSIGN(const auto step, integer_or(bound[2], 1));
  const std::int64_t start = has_stop ? first : 0;
  if (step == 0) {
    return fail(ErrorCode::invalid_file, "range(): the step cannot be zero");
  }
  const std::size_t n = range_length(start, stop, step);
  HEARTH_TRY(runtime.budget().spend_list(n));
  std::vector<Value> items;
  items.reserve(n);
  for (std::size_t i = 0; i < n; ++i) {
    items.push_back(Value::trusted(start + static_cast<std::int64_t>(i) * step));
  }
  return runtime.make_list(std::move(items));
}

/// The entries of a mapping or of a list of pairs, then the keyword arguments.
Result<Dict> dict_from(Runtime& runtime, const Arguments& arguments) {
  if (arguments.positional.size() > 1) {
    return fail(ErrorCode::invalid_file, "expected at most one mapping or list of pairs");
  }
  Dict dict;
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    if (source.as_dict()) {
      dict = *source.as_dict();
    } else if (source.as_list()) {
      for (const Value& pair : source.as_list()->items) {
        const List* items = pair.as_list();
        if (!items || items->items.size() != 2 || !Dict::is_key(items->items[0])) {
          return fail(ErrorCode::invalid_file, "expected pairs of a key and a value");
        }
        HEARTH_TRY(spend_lookup(runtime.budget(), items->items[0]));
        dict.set(items->items[0], items->items[1]);
      }
    } else {
      return fail(ErrorCode::invalid_file, "expected a mapping or a list of pairs, found '{}'",
                  source.type_name());
    }
  }
  for (const auto& [name, value] : arguments.keyword) {
    dict.set(name, value);
  }
  return dict;
}

Result<Value> dict_function(Runtime& runtime, const Arguments& arguments) {
  HEARTH_ASSIGN(auto dict, dict_from(runtime, arguments));
  return runtime.make_dict(std::move(dict));
}

Result<Value> namespace_function(Runtime& runtime, const Arguments& arguments) {
  HEARTH_ASSIGN(auto attributes, dict_from(runtime, arguments));
  HEARTH_TRY(runtime.lease_entries(attributes));
  return runtime.adopt(std::make_shared<Namespace>(std::move(attributes)));
}

/// Ends the render with the template's own message, and nothing added to it.
Result<Value> raise_exception_function(Runtime& runtime, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound, bind_arguments("raise_exception", arguments, {"message"}, 1));
  HEARTH_ASSIGN(const Value message, to_string(runtime, bound[0]));
  return Failure(Error{ErrorCode::invalid_argument, std::string(message.as_text()->bytes())});
}

Result<Value> strftime_now_function(Runtime& runtime, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound, bind_arguments("strftime_now", arguments, {"format"}, 1));
  HEARTH_ASSIGN(const Text* format, text_of(bound[0]));
  HEARTH_ASSIGN(auto text, spell_time(format->bytes(), runtime.now()));
  return Value(std::move(text), format->weakest_origin());
}

Result<Value> joiner_function(Runtime& runtime, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound, bind_arguments("joiner", arguments, {"sep"}));
  const Value comma(", ", Origin::trusted);
  return runtime.adopt(std::make_shared<Joiner>(bound[0].is_undefined() ? comma : bound[0]));
}

struct NamedFunction {
  std::string_view name;
  NativeFunction::Implementation implementation;
};

constexpr std::array functions{
    NamedFunction{"range", range_function},
    NamedFunction{"dict", dict_function},
    NamedFunction{"namespace", namespace_function},
    NamedFunction{"raise_exception", raise_exception_function},
    NamedFunction{"strftime_now", strftime_now_function},
    NamedFunction{"joiner", joiner_function},
};

}  // namespace

NativeFunction::Implementation find_function(std::string_view name) {
  const auto at = std::find_if(functions.begin(), functions.end(),
                               [name](const NamedFunction& f) { return f.name == name; });
  return at == functions.end() ? nullptr : at->implementation;
}

}  // namespace hearth::chat
