/// Filters that apply other filters and tests to each item: map, select, reject, selectattr,
/// rejectattr.
#include <array>

#include "base/fail.h"
#include "chat/template/argument_types.h"
#include "chat/template/filters.h"
#include "chat/template/lookup.h"
#include "chat/template/sequence.h"
#include "chat/template/tests.h"

namespace hearth::chat {
namespace {

/// The arguments after the first `n`.
Arguments without_first(const Arguments& arguments, std::size_t n) {
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin(),
                        rest.positional.begin() + static_cast<std::ptrdiff_t>(n));
  return rest;
}

/// These filters take anything false for an empty list.
Result<Value> items_of(Runtime& runtime, const Value& subject) {
  return subject.is_truthy() ? to_list(runtime, subject) : Result<Value>(Value(List{}));
}

Result<Value> attribute_or_default(Runtime& runtime, const Value& item,
                                   const Arguments& arguments) {
  const Value* otherwise = arguments.find_keyword("default");
  HEARTH_ASSIGN(auto attribute, lookup_path(runtime, item, *arguments.find_keyword("attribute")));
  return attribute.is_undefined() && otherwise ? *otherwise : attribute;
}

/// map(attribute="name", default=...) or map("filter", arguments of the filter...).
Result<Value> map_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const bool is_attribute = arguments.positional.empty() && arguments.find_keyword("attribute");
  if (!is_attribute && arguments.positional.empty()) {
    return fail(ErrorCode::invalid_file, "map: needs a filter or an attribute");
  }
  HEARTH_ASSIGN(const Value list, items_of(runtime, subject));
  std::vector<Value> mapped;
  const Arguments rest = is_attribute ? Arguments() : without_first(arguments, 1);
  for (const Value& item : list.as_list()->items) {
    HEARTH_TRY(runtime.budget().spend_steps(1));
    if (is_attribute) {
      HEARTH_ASSIGN(auto attribute, attribute_or_default(runtime, item, arguments));
      mapped.push_back(std::move(attribute));
    } else {
      HEARTH_ASSIGN(const Text* name, text_of(arguments.positional[0]));
      HEARTH_ASSIGN(auto value, runtime.nested([&] {
        return apply_filter(runtime, name->bytes(), item, rest);
      }));
      mapped.push_back(std::move(value));
    }
  }
  return runtime.make_list(std::move(mapped), ListKind::generator);
}

/// Keeps the items (or drops them) that pass the test named by the first argument, or are true
/// without one. With `by_attribute` the first argument is an attribute, and the test looks at that.
template <bool keeps, bool by_attribute>
Result<Value> selection_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  constexpr std::size_t n_before_test = by_attribute ? 1 : 0;
  if (arguments.positional.size() < n_before_test) {
    return fail(ErrorCode::invalid_file, "selectattr and rejectattr need an attribute");
  }
  const bool has_test_name = arguments.positional.size() > n_before_test;
  const Arguments rest = has_test_name ? without_first(arguments, n_before_test + 1) : Arguments();
  HEARTH_ASSIGN(const Value list, items_of(runtime, subject));
  std::vector<Value> selected;
  for (const Value& item : list.as_list()->items) {
    HEARTH_TRY(runtime.budget().spend_steps(1));
    Value tested = item;
    if (by_attribute) {
      HEARTH_ASSIGN(tested, lookup_path(runtime, item, arguments.positional[0]));
    }
    bool passes = tested.is_truthy();
    if (has_test_name) {
      HEARTH_ASSIGN(const Text* name, text_of(arguments.positional[n_before_test]));
      HEARTH_ASSIGN(passes, apply_test(runtime, name->bytes(), tested, rest));
    }
    if (passes == keeps) {
      selected.push_back(item);
    }
  }
  return runtime.make_list(std::move(selected), ListKind::generator);
}

constexpr std::array selection_filters{
    NamedFilter{"map", map_filter},
    NamedFilter{"select", selection_filter<true, false>},
    NamedFilter{"reject", selection_filter<false, false>},
    NamedFilter{"selectattr", selection_filter<true, true>},
    NamedFilter{"rejectattr", selection_filter<false, true>},
};

}  // namespace

Filter find_selection_filter(std::string_view name) {
  return find_in(selection_filters, name);
}

}  // namespace hearth::chat
