#include "chat/template/value.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "base/assert.h"
#include "base/fail.h"
#include "chat/template/arguments.h"

namespace hearth::chat {

std::optional<Value> Object::attribute(std::string_view /*name*/) const {
  return std::nullopt;
}

bool Object::set_attribute(std::string_view /*name*/, Value /*value*/) {
  return false;
}

Result<Value> Object::call(Runtime& /*runtime*/, const Arguments& /*arguments*/) {
  return fail(ErrorCode::invalid_file, "'{}' object is not callable", kind());
}

Value::Value(std::string text, Origin origin) : Value(Text(std::move(text), origin)) {}
Value::Value(Text text) : data_(std::make_shared<const Text>(std::move(text))) {}

Value::Value(List list) : height_(1) {
  for (const Value& item : list.items) {
    height_ = std::max(height_, item.height() + 1);
  }
  data_ = std::make_shared<const List>(std::move(list));
}

Value::Value(Dict dict) : height_(1) {
  for (const auto& [key, value] : dict.entries()) {
    height_ = std::max(height_, value.height() + 1);
  }
  data_ = std::make_shared<const Dict>(std::move(dict));
}

Value::Value(std::shared_ptr<Object> object) : height_(object->height()) {
  data_ = std::move(object);
}

Value Value::none(Origin origin) {
  Value value;
  value.origin_ = origin;
  return value;
}

Value Value::undefined(std::string reason) {
  Value value;
  value.data_ = Undefined{std::make_shared<const std::string>(std::move(reason))};
  value.origin_ = Origin::trusted;
  return value;
}

const Text* Value::as_text() const {
  const auto* text = std::get_if<std::shared_ptr<const Text>>(&data_);
  return text ? text->get() : nullptr;
}

const List* Value::as_list() const {
  const auto* list = std::get_if<std::shared_ptr<const List>>(&data_);
  return list ? list->get() : nullptr;
}

const Dict* Value::as_dict() const {
  const auto* dict = std::get_if<std::shared_ptr<const Dict>>(&data_);
  return dict ? dict->get() : nullptr;
}

Object* Value::as_object() const {
  const auto* object = std::get_if<std::shared_ptr<Object>>(&data_);
  return object ? object->get() : nullptr;
}

const std::string* Value::undefined_reason() const {
  const auto* undefined = std::get_if<Undefined>(&data_);
  return undefined ? undefined->reason.get() : nullptr;
}

std::optional<std::int64_t> Value::to_integer() const {
  if (const auto* b = as_bool()) {
    return *b ? 1 : 0;
  }
  const auto* i = as_integer();
  return i ? std::optional(*i) : std::nullopt;
}

std::optional<double> Value::to_real() const {
  if (const auto* d = as_real()) {
    return *d;
  }
  const auto i = to_integer();
  return i ? std::optional(static_cast<double>(*i)) : std::nullopt;
}

Value Value::as_markup() const {
  Value marked = *this;
  marked.is_markup_ = true;
  return marked;
}

bool Value::is_truthy() const {
  if (const auto number = to_real()) {
    return *number != 0;
  }
  if (const auto* text = as_text()) {
    return !text->empty();
  }
  if (const auto* list = as_list()) {
    return !list->items.empty() || list->kind == ListKind::generator;
  }
  if (const auto* dict = as_dict()) {
    return !dict->entries().empty();
  }
  return as_object() != nullptr;
}

std::string_view Value::type_name() const {
  constexpr std::array<std::string_view, std::variant_size_v<Data>> names{
      "Undefined", "NoneType", "bool", "int", "float", "str", "list", "dict", "object"};
  if (const auto* list = as_list()) {
    constexpr std::array<std::string_view, 4> kinds{"list", "tuple", "dict view", "generator"};
    return kinds[static_cast<std::size_t>(list->kind)];
  }
  if (const auto* object = as_object()) {
    return object->kind();
  }
  return names[data_.index()];
}

bool Value::is_same(const Value& other) const {
  if (data_.index() != other.data_.index()) {
    return false;
  }
  const auto is_one_thing = [](const auto& a, const auto& b) {
    using Kind = std::decay_t<decltype(a)>;
    if constexpr (std::is_same_v<Kind, Undefined>) {
      return a.reason == b.reason;
    } else {
      return a == b;
    }
  };
  return std::visit(
      [&](const auto& mine) {
        return is_one_thing(mine, std::get<std::decay_t<decltype(mine)>>(other.data_));
      },
      data_);
}

namespace {

/// Keys order by class first: none, numbers, strings.
int key_class(const Value& key) {
  return key.is_none() ? 0 : key.is_number() ? 1 : 2;
}

constexpr int string_key_class = 2;

bool less_numbers(const Value& a, const Value& b) {
  return a.to_integer() && b.to_integer() ? *a.to_integer() < *b.to_integer()
                                          : *a.to_real() < *b.to_real();
}

std::string_view key_text(const Value& key) {
  HEARTH_ASSERT(key.is_string());
  return key.as_text()->bytes();
}

}  // namespace

bool Dict::KeyLess::operator()(const Value& a, const Value& b) const {
  if (key_class(a) != key_class(b)) {
    return key_class(a) < key_class(b);
  }
  return a.is_string() ? key_text(a) < key_text(b) : a.is_number() && less_numbers(a, b);
}

bool Dict::KeyLess::operator()(const Value& a, std::string_view b) const {
  return key_class(a) < string_key_class || key_text(a) < b;
}

bool Dict::KeyLess::operator()(std::string_view a, const Value& b) const {
  return key_class(b) == string_key_class && a < key_text(b);
}

bool Dict::is_key(const Value& key) {
  const auto* real = key.as_real();
  return key.is_none() || key.is_string() || (key.is_number() && !(real && std::isnan(*real)));
}

const Value* Dict::find(const Value& key) const {
  const auto at = is_key(key) ? index_.find(key) : index_.end();
  return at == index_.end() ? nullptr : &entries_[at->second].second;
}

const Value* Dict::find_name(std::string_view name) const {
  const auto at = index_.find(name);
  return at == index_.end() ? nullptr : &entries_[at->second].second;
}

void Dict::set(const Value& key, Value value) {
  HEARTH_ASSERT(is_key(key));
  const auto [at, is_new] = index_.try_emplace(key, entries_.size());
  if (is_new) {
    entries_.emplace_back(key, std::move(value));
  } else {
    entries_[at->second].second = std::move(value);
  }
}

}  // namespace hearth::chat
