/// Filters on lists and dicts, and `default`.
#include <algorithm>
#include <array>

#include "base/fail.h"
#include "chat/template/argument_types.h"
#include "chat/template/compare.h"
#include "chat/template/filters.h"
#include "chat/template/lookup.h"
#include "chat/template/methods.h"
#include "chat/template/print.h"
#include "chat/template/sequence.h"
#include "chat/template/sort.h"
#include "chat/template/text_methods.h"
#include "chat/template/text_operations.h"

namespace hearth::chat {
namespace {

Result<Value> default_filter(Runtime& /*runtime*/, const Value& subject,
                             const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound,
                bind_arguments("default", arguments, {"default_value", "boolean"}));
  const bool is_missing =
      subject.is_undefined() || (truth_or(bound[1], false) && !subject.is_truthy());
  if (!is_missing) {
    return subject;
  }
  return bound[0].is_undefined() && arguments.positional.empty() ? Value(Text()) : bound[0];
}

Result<Value> length_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  HEARTH_TRY(bind_arguments("length", arguments, {}));
  if (const Text* text = subject.as_text()) {
    HEARTH_TRY(runtime.budget().spend_scan(text->size()));
  }
  if (const auto n = length(subject)) {
    return Value::trusted(static_cast<std::int64_t>(*n));
  }
  return fail(ErrorCode::invalid_file, "'{}' object has no length", subject.type_name());
}

Result<Value> list_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  HEARTH_TRY(bind_arguments("list", arguments, {}));
  HEARTH_ASSIGN(const Value list, to_list(runtime, subject));
  return runtime.make_list(list.as_list()->items);
}

Result<Value> items_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  HEARTH_TRY(bind_arguments("items", arguments, {}));
  if (subject.is_undefined()) {
    return Value(List{.items = {}, .kind = ListKind::generator});
  }
  if (!subject.as_dict()) {
    return fail(ErrorCode::invalid_file, "items: expected a mapping, found '{}'",
                subject.type_name());
  }
  HEARTH_ASSIGN(const Value items, runtime.call(*find_method(subject, "items"), {}));
  return runtime.make_list(items.as_list()->items, ListKind::generator);
}

Result<Value> first_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  HEARTH_TRY(bind_arguments("first", arguments, {}));
  HEARTH_ASSIGN(const Value list, to_list(runtime, subject));
  const auto& items = list.as_list()->items;
  return items.empty() ? Value::undefined("the sequence was empty") : items.front();
}

Result<Value> last_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  HEARTH_TRY(bind_arguments("last", arguments, {}));
  HEARTH_ASSIGN(const Value list, to_list(runtime, subject));
  const auto& items = list.as_list()->items;
  return items.empty() ? Value::undefined("the sequence was empty") : items.back();
}

Result<Value> reverse_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  HEARTH_TRY(bind_arguments("reverse", arguments, {}));
  if (subject.is_string()) {
    return slice(runtime, subject, Value(), Value(), Value(-1));
  }
  HEARTH_ASSIGN(const Value list, to_list(runtime, subject));
  std::vector<Value> items = list.as_list()->items;
  std::reverse(items.begin(), items.end());
  return runtime.make_list(std::move(items), ListKind::generator);
}

Result<Value> join_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound, bind_arguments("join", arguments, {"d", "attribute"}));
  HEARTH_ASSIGN(Value list, to_list(runtime, subject));
  if (!bound[1].is_undefined() && !bound[1].is_none()) {
    std::vector<Value> attributes;
    for (const Value& item : list.as_list()->items) {
      HEARTH_ASSIGN(auto attribute, lookup_path(runtime, item, bound[1]));
      attributes.push_back(std::move(attribute));
    }
    HEARTH_ASSIGN(list, runtime.make_list(std::move(attributes)));
  }
  HEARTH_ASSIGN(const Value separator, to_string(runtime, bound[0]));
  return join(runtime, *separator.as_text(), *list.as_list());
}

/// What `item` is ordered by: itself or its attribute, without case unless asked.
Result<Value> sort_key(Runtime& runtime, const Value& item, const Value& attribute,
                       bool is_case_sensitive) {
  const bool is_whole = attribute.is_undefined() || attribute.is_none();
  HEARTH_ASSIGN(Value key, is_whole ? Result<Value>(item) : lookup_path(runtime, item, attribute));
  if (key.is_string() && !is_case_sensitive) {
    return lower(runtime, *key.as_text());
  }
  return key;
}

/// As sort_key, for an attribute that may name several, separated by commas.
Result<Value> sort_keys(Runtime& runtime, const Value& item, const Value& attribute,
                        bool is_case_sensitive) {
  const Text* text = attribute.as_text();
  if (!text || text->bytes().find(',') == std::string_view::npos) {
    return sort_key(runtime, item, attribute, is_case_sensitive);
  }
  const Text comma(",", Origin::trusted);
  HEARTH_ASSIGN(const Value names, split(runtime, *text, &comma, -1, false));
  std::vector<Value> keys;
  for (const Value& name : names.as_list()->items) {
    HEARTH_ASSIGN(auto key, sort_key(runtime, item, name, is_case_sensitive));
    keys.push_back(std::move(key));
  }
  return runtime.make_list(std::move(keys));
}

Result<Value> sort_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound,
                bind_arguments("sort", arguments, {"reverse", "case_sensitive", "attribute"}));
  HEARTH_ASSIGN(const Value list, to_list(runtime, subject));
  std::vector<Keyed> keyed;
  for (const Value& item : list.as_list()->items) {
    HEARTH_ASSIGN(auto key, sort_keys(runtime, item, bound[2], truth_or(bound[1], false)));
    keyed.push_back({std::move(key), item});
  }
  HEARTH_ASSIGN(auto items,
                sorted_items(runtime.budget(), std::move(keyed), truth_or(bound[0], false)));
  return runtime.make_list(std::move(items));
}

Result<Value> dict_sort_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound,
                bind_arguments("dictsort", arguments, {"case_sensitive", "by", "reverse"}));
  HEARTH_ASSIGN(const Text* given_by, optional_text(bound[1]));
  const std::string_view by = given_by ? given_by->bytes() : "key";
  if (by != "key" && by != "value") {
    return fail(ErrorCode::invalid_file, "dictsort: 'by' must be 'key' or 'value', not '{}'", by);
  }
  const Dict* dict = subject.as_dict();
  if (!dict) {
    return fail(ErrorCode::invalid_file, "dictsort: expected a mapping, found '{}'",
                subject.type_name());
  }
  std::vector<Keyed> keyed;
  for (const auto& [key, value] : dict->entries()) {
    HEARTH_ASSIGN(auto order,
                  sort_key(runtime, by == "key" ? key : value, Value(), truth_or(bound[0], false)));
    HEARTH_ASSIGN(auto pair, runtime.make_tuple({key, value}));
    keyed.push_back({std::move(order), std::move(pair)});
  }
  HEARTH_ASSIGN(auto items,
                sorted_items(runtime.budget(), std::move(keyed), truth_or(bound[2], false)));
  return runtime.make_list(std::move(items));
}

Result<Value> unique_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound,
                bind_arguments("unique", arguments, {"case_sensitive", "attribute"}));
  HEARTH_ASSIGN(const Value list, to_list(runtime, subject));
  Dict seen;
  std::vector<Value> items;
  for (const Value& item : list.as_list()->items) {
    HEARTH_ASSIGN(const auto key, sort_key(runtime, item, bound[1], truth_or(bound[0], false)));
    if (!Dict::is_key(key)) {
      return fail(ErrorCode::invalid_file, "unique: values of type '{}' cannot be compared",
                  key.type_name());
    }
    HEARTH_TRY(spend_lookup(runtime.budget(), key));
    if (!seen.find(key)) {
      seen.set(key, Value());
      items.push_back(item);
    }
  }
  return runtime.make_list(std::move(items), ListKind::generator);
}

template <bool wants_largest>
Result<Value> extreme_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound,
                bind_arguments("min or max", arguments, {"case_sensitive", "attribute"}));
  HEARTH_ASSIGN(const Value list, to_list(runtime, subject));
  Value best = Value::undefined("the sequence was empty");
  Value best_key;
  for (const Value& item : list.as_list()->items) {
    HEARTH_ASSIGN(auto key, sort_key(runtime, item, bound[1], truth_or(bound[0], false)));
    bool is_better = best.is_undefined();
    if (!is_better) {
      HEARTH_ASSIGN(is_better, wants_largest ? less(runtime.budget(), best_key, key)
                                             : less(runtime.budget(), key, best_key));
    }
    if (is_better) {
      best = item;
      best_key = std::move(key);
    }
  }
  return best;
}

constexpr std::array sequence_filters{
    NamedFilter{"default", default_filter},   NamedFilter{"d", default_filter},
    NamedFilter{"length", length_filter},     NamedFilter{"count", length_filter},
    NamedFilter{"list", list_filter},         NamedFilter{"items", items_filter},
    NamedFilter{"first", first_filter},       NamedFilter{"last", last_filter},
    NamedFilter{"reverse", reverse_filter},   NamedFilter{"join", join_filter},
    NamedFilter{"sort", sort_filter},         NamedFilter{"dictsort", dict_sort_filter},
    NamedFilter{"unique", unique_filter},     NamedFilter{"min", extreme_filter<false>},
    NamedFilter{"max", extreme_filter<true>},
};

}  // namespace

Filter find_sequence_filter(std::string_view name) {
  return find_in(sequence_filters, name);
}

}  // namespace hearth::chat
