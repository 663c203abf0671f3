#include "chat/template/runtime.h"

#include <utility>

#include "base/fail.h"

namespace hearth::chat {
namespace {

Result<Value> checked_height(Value value) {
  if (value.height() > max_value_height) {
    return fail(ErrorCode::out_of_memory, "the template nests lists or dicts more than {} deep",
                max_value_height);
  }
  return value;
}

}  // namespace

Runtime::~Runtime() {
  for (const auto& object : objects_) {
    object->release();
  }
}

Result<Value> Runtime::adopt(std::shared_ptr<Object> object) {
  if (objects_.size() >= budget_.limits().n_objects) {
    return fail(ErrorCode::out_of_memory, "the template makes more than {} namespaces and macros",
                budget_.limits().n_objects);
  }
  objects_.push_back(object);
  return Value(std::move(object));
}

Result<Value> Runtime::call(const Value& callee, const Arguments& arguments) {
  if (const auto* reason = callee.undefined_reason()) {
    return fail(ErrorCode::invalid_file, "{}", *reason);
  }
  Object* object = callee.as_object();
  if (!object || !object->is_callable()) {
    return fail(ErrorCode::invalid_file, "'{}' object is not callable", callee.type_name());
  }
  return nested([&] { return object->call(*this, arguments); });
}

Result<void> Runtime::check_nesting() const {
  if (n_nested_calls_ < budget_.limits().n_nested_calls) {
    return {};
  }
  return fail(ErrorCode::out_of_memory, "the template nests calls more than {} deep",
              budget_.limits().n_nested_calls);
}

Result<Value> Runtime::make_list(std::vector<Value> items, ListKind kind) {
  HEARTH_TRY(budget_.spend_list(items.size()));
  HEARTH_ASSIGN(auto lease, budget_.lease(items.size() * sizeof(Value)));
  return checked_height(Value(List{std::move(items), kind, std::move(lease)}));
}

Result<Value> Runtime::make_dict(Dict dict) {
  HEARTH_TRY(lease_entries(dict));
  return checked_height(Value(std::move(dict)));
}

Result<void> Runtime::lease_entries(Dict& dict) {
  // An entry has two values and an index node with a third one.
  constexpr std::size_t entry_bytes = 3 * sizeof(Value) + 48;
  HEARTH_TRY(budget_.spend_list(dict.entries().size()));
  HEARTH_ASSIGN(auto lease, budget_.lease(dict.entries().size() * entry_bytes));
  dict.hold(std::move(lease));
  return {};
}

Result<void> TextWriter::reserve(std::size_t n_bytes) {
  return budget_.spend_text(n_bytes, builder_.size());
}

Result<void> TextWriter::append(std::string_view bytes, Origin origin) {
  HEARTH_TRY(reserve(bytes.size()));
  builder_.append(bytes, origin);
  return {};
}

Result<void> TextWriter::append(const Text& text, std::size_t begin, std::size_t end) {
  HEARTH_TRY(reserve(end - begin));
  builder_.append(text, begin, end);
  return {};
}

Result<Text> TextWriter::take() {
  HEARTH_ASSIGN(auto lease, budget_.lease(builder_.size()));
  return builder_.take(std::move(lease));
}

Result<Value> TextWriter::take_value() {
  HEARTH_ASSIGN(auto text, take());
  return Value(std::move(text));
}

}  // namespace hearth::chat
