#include "chat/template/sequence.h"

#include <algorithm>
#include <limits>

#include "base/fail.h"
#include "chat/template/unicode.h"

namespace hearth::chat {
namespace {

std::int64_t as_signed(std::size_t n) {
  return static_cast<std::int64_t>(n);
}

Result<Value> characters(Runtime& runtime, const Text& text) {
  std::vector<Value> items;
  HEARTH_TRY(runtime.budget().spend_scan(text.size()));
  HEARTH_TRY(runtime.budget().spend_list(count_code_points(text.bytes())));
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t n_bytes = code_point_at(text.bytes(), at).n_bytes;
    HEARTH_ASSIGN(auto character, part_of(runtime, text, at, at + n_bytes));
    items.push_back(std::move(character));
    at += n_bytes;
  }
  return runtime.make_list(std::move(items));
}

Result<std::optional<std::int64_t>> bound(const Value& value) {
  if (value.is_none()) {
    return std::nullopt;
  }
  if (const auto integer = value.to_integer()) {
    return integer;
  }
  return fail(ErrorCode::invalid_file, "slice bounds must be integers or none, not '{}'",
              value.type_name());
}

/// The positions a Python slice visits: begin, begin + step, ... while before (or after) end.
struct SliceRange {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t step;

  [[nodiscard]] bool goes_on(std::int64_t at) const { return step > 0 ? at < end : at > end; }
};

/// Source: Python language reference, "Slicings", and slice.indices().
SliceRange resolve(std::optional<std::int64_t> begin, std::optional<std::int64_t> end,
                   std::int64_t step, std::int64_t n) {
  const std::int64_t lowest = step > 0 ? 0 : -1;
  const std::int64_t highest = step > 0 ? n : n - 1;
  const auto place = [&](std::int64_t at) {
    return std::clamp(at < 0 ? std::max(at, -n - 1) + n : at, lowest, highest);
  };
  return {.begin = begin ? place(*begin) : (step > 0 ? lowest : highest),
          .end = end ? place(*end) : (step > 0 ? highest : lowest),
          .step = std::clamp(step, -n - 1, n + 1)};  // a longer stride visits nothing more
}

Result<Value> slice_list(Runtime& runtime, const List& list, const SliceRange& range) {
  std::vector<Value> items;
  for (std::int64_t at = range.begin; range.goes_on(at); at += range.step) {
    items.push_back(list.items[static_cast<std::size_t>(at)]);
  }
  return runtime.make_list(std::move(items), list.kind);
}

Result<Value> slice_text(Runtime& runtime, const Text& text, const SliceRange& range) {
  const std::string_view bytes = text.bytes();
  if (range.step == 1) {
    const std::size_t begin = byte_offset(bytes, static_cast<std::size_t>(range.begin));
    const auto n = static_cast<std::size_t>(std::max(range.end - range.begin, std::int64_t{0}));
    return part_of(runtime, text, begin, begin + byte_offset(bytes.substr(begin), n));
  }
  std::vector<std::size_t> starts;
  for (std::size_t at = 0; at < bytes.size(); at += code_point_at(bytes, at).n_bytes) {
    starts.push_back(at);
  }
  starts.push_back(bytes.size());
  TextWriter out(runtime.budget());
  for (std::int64_t at = range.begin; range.goes_on(at); at += range.step) {
    const auto character = static_cast<std::size_t>(at);
    HEARTH_TRY(out.append(text, starts[character], starts[character + 1]));
  }
  return out.take_value();
}

}  // namespace

std::optional<std::size_t> length(const Value& value) {
  if (const Text* text = value.as_text()) {
    return count_code_points(text->bytes());
  }
  if (const List* list = value.as_list()) {
    return list->kind == ListKind::generator ? std::nullopt : std::optional(list->items.size());
  }
  if (const Dict* dict = value.as_dict()) {
    return dict->entries().size();
  }
  return value.is_undefined() ? std::optional<std::size_t>(0) : std::nullopt;
}

Result<Value> to_list(Runtime& runtime, const Value& value) {
  if (value.as_list()) {
    return value;
  }
  if (const Text* text = value.as_text()) {
    return characters(runtime, *text);
  }
  if (value.is_undefined()) {
    return Value(List{});
  }
  const Dict* dict = value.as_dict();
  if (!dict) {
    return fail(ErrorCode::invalid_file, "'{}' object is not iterable", value.type_name());
  }
  std::vector<Value> keys;
  for (const auto& [key, item] : dict->entries()) {
    keys.push_back(key);
  }
  return runtime.make_list(std::move(keys));
}

Result<Value> item_at(Runtime& runtime, const Value& value, std::int64_t index) {
  const Text* text = value.as_text();
  if (text) {
    HEARTH_TRY(runtime.budget().spend_scan(text->size()));
  }
  const std::int64_t n = as_signed(length(value).value_or(0));
  const std::int64_t at = index < 0 ? std::max(index, -n - 1) + n : index;
  if (at < 0 || at >= n) {
    HEARTH_TRY(runtime.budget().spend_objects());
    return Value::undefined(format("'{}' has no item {}", value.type_name(), index));
  }
  if (const List* list = value.as_list()) {
    return list->items[static_cast<std::size_t>(at)];
  }
  const std::size_t begin = byte_offset(text->bytes(), static_cast<std::size_t>(at));
  return part_of(runtime, *text, begin, begin + code_point_at(text->bytes(), begin).n_bytes);
}

Result<Value> slice(Runtime& runtime, const Value& value, const Value& begin, const Value& end,
                    const Value& step) {
  const Text* text = value.as_text();
  const List* list = value.as_list();
  if (!text && !(list && list->is_indexed())) {
    return fail(ErrorCode::invalid_file, "'{}' object cannot be sliced", value.type_name());
  }
  if (text) {
    HEARTH_TRY(runtime.budget().spend_scan(text->size()));
  }
  HEARTH_ASSIGN(const auto first, bound(begin));
  HEARTH_ASSIGN(const auto last, bound(end));
  HEARTH_ASSIGN(const auto stride, bound(step));
  if (stride == 0) {
    return fail(ErrorCode::invalid_file, "the slice step cannot be zero");
  }
  const auto range = resolve(first, last, stride.value_or(1), as_signed(*length(value)));
  return text ? slice_text(runtime, *text, range) : slice_list(runtime, *list, range);
}

Result<Value> part_of(Runtime& runtime, const Text& text, std::size_t begin, std::size_t end) {
  TextWriter out(runtime.budget());
  HEARTH_TRY(out.append(text, begin, end));
  return out.take_value();
}

}  // namespace hearth::chat
