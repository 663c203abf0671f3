#include "chat/template/compare.h"

#include "base/fail.h"
#include "chat/template/search.h"

namespace hearth::chat {
namespace {

Result<bool> equal_lists(Budget& budget, const List& a, const List& b) {
  if (a.is_tuple() != b.is_tuple() || a.items.size() != b.items.size()) {
    return false;
  }
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    HEARTH_ASSIGN(const bool is_equal, equal(budget, a.items[i], b.items[i]));
    if (!is_equal) {
      return false;
    }
  }
  return true;
}

Result<bool> equal_dicts(Budget& budget, const Dict& a, const Dict& b) {
  if (a.entries().size() != b.entries().size()) {
    return false;
  }
  for (const auto& [key, value] : a.entries()) {
    HEARTH_TRY(spend_lookup(budget, key));
    const Value* other = b.find(key);
    if (!other) {
      return false;
    }
    HEARTH_ASSIGN(const bool is_equal, equal(budget, value, *other));
    if (!is_equal) {
      return false;
    }
  }
  return true;
}

Result<bool> less_lists(Budget& budget, const List& a, const List& b) {
  for (std::size_t i = 0; i < a.items.size() && i < b.items.size(); ++i) {
    HEARTH_ASSIGN(const bool is_equal, equal(budget, a.items[i], b.items[i]));
    if (!is_equal) {
      return less(budget, a.items[i], b.items[i]);
    }
  }
  return a.items.size() < b.items.size();
}

}  // namespace

Result<void> spend_lookup(Budget& budget, const Value& key) {
  return budget.spend_scan(key.is_string() ? key.as_text()->size() : 0);
}

Result<bool> equal(Budget& budget, const Value& a, const Value& b) {
  HEARTH_TRY(budget.spend_steps(1));
  if (a.to_integer() && b.to_integer()) {
    return *a.to_integer() == *b.to_integer();
  }
  if (a.is_number() && b.is_number()) {
    return *a.to_real() == *b.to_real();
  }
  if (a.as_text() && b.as_text()) {
    HEARTH_TRY(budget.spend_scan(a.as_text()->size()));
    return a.as_text()->bytes() == b.as_text()->bytes();
  }
  if (a.as_list() && b.as_list()) {
    return equal_lists(budget, *a.as_list(), *b.as_list());
  }
  if (a.as_dict() && b.as_dict()) {
    return equal_dicts(budget, *a.as_dict(), *b.as_dict());
  }
  if (a.as_object() || b.as_object()) {
    return a.as_object() == b.as_object();
  }
  return (a.is_none() && b.is_none()) || (a.is_undefined() && b.is_undefined());
}

Result<bool> less(Budget& budget, const Value& a, const Value& b) {
  HEARTH_TRY(budget.spend_steps(1));
  if (a.to_integer() && b.to_integer()) {
    return *a.to_integer() < *b.to_integer();
  }
  if (a.is_number() && b.is_number()) {
    return *a.to_real() < *b.to_real();
  }
  if (a.as_text() && b.as_text()) {
    HEARTH_TRY(budget.spend_scan(a.as_text()->size()));
    return a.as_text()->bytes() < b.as_text()->bytes();
  }
  const List* x = a.as_list();
  const List* y = b.as_list();
  if (x && y && x->is_tuple() == y->is_tuple()) {
    return less_lists(budget, *x, *y);
  }
  for (const Value* value : {&a, &b}) {
    if (const auto* reason = value->undefined_reason()) {
      return fail(ErrorCode::invalid_file, "{}", *reason);
    }
  }
  return fail(ErrorCode::invalid_file, "'{}' and '{}' have no order", a.type_name(), b.type_name());
}

Result<bool> contains(Budget& budget, const Value& container, const Value& item) {
  if (const Text* text = container.as_text()) {
    if (!item.is_string()) {
      return fail(ErrorCode::invalid_file, "'in <string>' needs a string on the left, not '{}'",
                  item.type_name());
    }
    HEARTH_TRY(budget.spend_scan(text->size()));
    return find_bytes(text->bytes(), item.as_text()->bytes(), 0).has_value();
  }
  if (const Dict* dict = container.as_dict()) {
    HEARTH_TRY(spend_lookup(budget, item));
    return dict->find(item) != nullptr;
  }
  if (const List* list = container.as_list()) {
    for (const Value& candidate : list->items) {
      HEARTH_ASSIGN(const bool is_equal, equal(budget, candidate, item));
      if (is_equal) {
        return true;
      }
    }
    return false;
  }
  if (container.is_undefined()) {
    return false;
  }
  return fail(ErrorCode::invalid_file, "'in' cannot search in '{}'", container.type_name());
}

}  // namespace hearth::chat
