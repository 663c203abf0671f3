#include "chat/template/methods.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "base/fail.h"
#include "chat/template/compare.h"
#include "chat/template/text_methods.h"

namespace hearth::chat {
namespace {

using Method = Result<Value> (*)(Runtime&, const Value&, const Arguments&);

class BoundMethod final : public Object {
 public:
  BoundMethod(Value subject, Method method) : subject_(std::move(subject)), method_(method) {}

  [[nodiscard]] std::string_view kind() const override { return "method"; }
  [[nodiscard]] bool is_callable() const override { return true; }
  [[nodiscard]] int height() const override { return subject_.height() + 1; }
  Result<Value> call(Runtime& runtime, const Arguments& arguments) override {
    return method_(runtime, subject_, arguments);
  }

 private:
  Value subject_;
  Method method_;
};

class BoundTextMethod final : public Object {
 public:
  BoundTextMethod(Value text, TextMethod method) : text_(std::move(text)), method_(method) {}

  [[nodiscard]] std::string_view kind() const override { return "method"; }
  [[nodiscard]] bool is_callable() const override { return true; }
  Result<Value> call(Runtime& runtime, const Arguments& arguments) override {
    return method_(runtime, *text_.as_text(), arguments);
  }

 private:
  Value text_;
  TextMethod method_;
};

template <class Select>
Result<Value> list_of_entries(Runtime& runtime, const Value& dict, Select select) {
  std::vector<Value> items;
  for (const auto& entry : dict.as_dict()->entries()) {
    HEARTH_ASSIGN(auto item, select(entry));
    items.push_back(std::move(item));
  }
  return runtime.make_list(std::move(items), ListKind::view);
}

Result<Value> dict_keys(Runtime& runtime, const Value& dict, const Arguments& arguments) {
  HEARTH_TRY(bind_arguments("keys", arguments, {}));
  return list_of_entries(runtime, dict,
                         [](const auto& entry) -> Result<Value> { return entry.first; });
}

Result<Value> dict_values(Runtime& runtime, const Value& dict, const Arguments& arguments) {
  HEARTH_TRY(bind_arguments("values", arguments, {}));
  return list_of_entries(runtime, dict,
                         [](const auto& entry) -> Result<Value> { return entry.second; });
}

Result<Value> dict_items(Runtime& runtime, const Value& dict, const Arguments& arguments) {
  HEARTH_TRY(bind_arguments("items", arguments, {}));
  return list_of_entries(runtime, dict, [&](const auto& entry) {
    return runtime.make_tuple({entry.first, entry.second});
  });
}

Result<Value> dict_get(Runtime& runtime, const Value& dict, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound, bind_arguments("get", arguments, {"key", "default"}, 1));
  HEARTH_TRY(spend_lookup(runtime.budget(), bound[0]));
  if (const Value* value = dict.as_dict()->find(bound[0])) {
    return *value;
  }
  return arguments.positional.size() + arguments.keyword.size() > 1 ? bound[1]
                                                                    : Value::none(Origin::trusted);
}

Result<Value> copy(Runtime& /*runtime*/, const Value& subject, const Arguments& arguments) {
  HEARTH_TRY(bind_arguments("copy", arguments, {}));
  return subject;  // values never change, so a copy is the same
}

Result<Value> list_count(Runtime& runtime, const Value& list, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound, bind_arguments("count", arguments, {"value"}, 1));
  std::int64_t n = 0;
  for (const Value& item : list.as_list()->items) {
    HEARTH_ASSIGN(const bool is_equal, equal(runtime.budget(), item, bound[0]));
    n += is_equal ? 1 : 0;
  }
  return Value::trusted(n);
}

Result<Value> list_index(Runtime& runtime, const Value& list, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound, bind_arguments("index", arguments, {"value"}, 1));
  std::int64_t at = 0;
  for (const Value& item : list.as_list()->items) {
    HEARTH_ASSIGN(const bool is_equal, equal(runtime.budget(), item, bound[0]));
    if (is_equal) {
      return Value::trusted(at);
    }
    ++at;
  }
  return fail(ErrorCode::invalid_file, "index(): the value is not in the list");
}

struct NamedMethod {
  std::string_view name;
  Method method;  // null: exists in Python, changes the object, forbidden here
};

constexpr std::array dict_methods{
    NamedMethod{"keys", dict_keys},     NamedMethod{"values", dict_values},
    NamedMethod{"items", dict_items},   NamedMethod{"get", dict_get},
    NamedMethod{"copy", copy},          NamedMethod{"clear", nullptr},
    NamedMethod{"pop", nullptr},        NamedMethod{"popitem", nullptr},
    NamedMethod{"setdefault", nullptr}, NamedMethod{"update", nullptr}};

constexpr std::array list_methods{
    NamedMethod{"count", list_count}, NamedMethod{"index", list_index},
    NamedMethod{"copy", copy},        NamedMethod{"append", nullptr},
    NamedMethod{"clear", nullptr},    NamedMethod{"pop", nullptr},
    NamedMethod{"reverse", nullptr},  NamedMethod{"insert", nullptr},
    NamedMethod{"sort", nullptr},     NamedMethod{"extend", nullptr},
    NamedMethod{"remove", nullptr}};

template <std::size_t n>
std::optional<Value> bind_method(const std::array<NamedMethod, n>& methods, const Value& subject,
                                 std::string_view name) {
  const auto at = std::find_if(methods.begin(), methods.end(),
                               [name](const NamedMethod& method) { return method.name == name; });
  if (at == methods.end()) {
    return std::nullopt;
  }
  if (!at->method) {
    return Value::undefined(format("the sandbox forbids '{}' of '{}', which would change it", name,
                                   subject.type_name()));
  }
  return Value(std::make_shared<BoundMethod>(subject, at->method));
}

}  // namespace

std::optional<Value> find_method(const Value& subject, std::string_view name) {
  if (subject.as_dict()) {
    return bind_method(dict_methods, subject, name);
  }
  if (subject.as_list()) {
    return bind_method(list_methods, subject, name);
  }
  const TextMethod method = subject.is_string() ? find_text_method(name) : nullptr;
  if (!method) {
    return std::nullopt;
  }
  return Value(std::make_shared<BoundTextMethod>(subject, method));
}

}  // namespace hearth::chat
