#include "chat/template/filters.h"

#include "base/fail.h"

namespace hearth::chat {
namespace {

Filter find_filter(std::string_view name) {
  for (const auto find :
       {find_text_filter, find_number_filter, find_sequence_filter, find_selection_filter}) {
    if (const Filter filter = find(name)) {
      return filter;
    }
  }
  return nullptr;
}

}  // namespace

bool has_filter(std::string_view name) {
  return find_filter(name) != nullptr;
}

Result<Value> apply_filter(Runtime& runtime, std::string_view name, const Value& subject,
                           const Arguments& arguments) {
  const Filter filter = find_filter(name);
  if (!filter) {
    return fail(ErrorCode::unsupported, "there is no filter named '{}'", name);
  }
  return filter(runtime, subject, arguments);
}

}  // namespace hearth::chat
