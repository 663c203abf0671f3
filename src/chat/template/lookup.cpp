#include "chat/template/lookup.h"

#include <charconv>
#include <utility>

#include "base/fail.h"
#include "chat/template/argument_types.h"
#include "chat/template/compare.h"
#include "chat/template/methods.h"
#include "chat/template/sequence.h"
#include "chat/template/unicode.h"

namespace hearth::chat {
namespace {

Result<Value> missing(Runtime& runtime, const Value& object, std::string_view name) {
  constexpr std::size_t n_shown = 60;  // characters: names come from requests too
  HEARTH_TRY(runtime.budget().spend_objects());
  return Value::undefined(format("'{} object' has no attribute '{}'", object.type_name(),
                                 name.substr(0, byte_offset(name, n_shown))));
}

bool is_indexed(const Value& object) {
  return object.is_string() || (object.as_list() && object.as_list()->is_indexed());
}

Result<void> require_defined(const Value& object) {
  const auto* reason = object.undefined_reason();
  return reason ? Result<void>(fail(ErrorCode::invalid_file, "{}", *reason)) : Result<void>();
}

}  // namespace

Result<Value> get_attribute(Runtime& runtime, const Value& object, std::string_view name) {
  HEARTH_TRY(require_defined(object));
  if (const Object* host = object.as_object()) {
    auto attribute = host->attribute(name);
    return attribute ? std::move(*attribute) : missing(runtime, object, name);
  }
  if (auto method = find_method(object, name)) {
    HEARTH_TRY(runtime.budget().spend_objects());
    return std::move(*method);
  }
  const Dict* dict = object.as_dict();
  const Value* entry = dict ? dict->find_name(name) : nullptr;
  return entry ? *entry : missing(runtime, object, name);
}

Result<Value> get_item(Runtime& runtime, const Value& object, const Value& key) {
  HEARTH_TRY(require_defined(object));
  if (const Dict* dict = object.as_dict()) {
    HEARTH_TRY(spend_lookup(runtime.budget(), key));
    if (const Value* entry = dict->find(key)) {
      return *entry;
    }
  } else if (const auto index = key.to_integer(); index && !object.as_object()) {
    if (is_indexed(object)) {
      return item_at(runtime, object, *index);
    }
  }
  if (const Text* name = key.as_text()) {
    return get_attribute(runtime, object, name->bytes());
  }
  return missing(runtime, object, "that item");
}

Result<Value> lookup_path(Runtime& runtime, const Value& object, const Value& path) {
  if (path.to_integer()) {
    return get_item(runtime, object, path);
  }
  HEARTH_ASSIGN(const Text* text, text_of(path));
  std::string_view rest = text->bytes();
  Value value = object;
  for (;;) {
    const std::size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    std::int64_t index = 0;
    const auto parsed = std::from_chars(part.data(), part.data() + part.size(), index);
    const bool is_index = parsed.ec == std::errc() && parsed.ptr == part.data() + part.size();
    HEARTH_ASSIGN(value,
                  get_item(runtime, value, is_index ? Value(index) : Value(std::string(part))));
    if (dot == std::string_view::npos) {
      return value;
    }
    rest.remove_prefix(dot + 1);
  }
}

}  // namespace hearth::chat
