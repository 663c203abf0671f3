#include "chat/template/html.h"

#include <string_view>

namespace hearth::chat {
namespace {

std::string_view entity(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '\'':
      return "&#39;";
    default:
      return "&#34;";
  }
}

}  // namespace

Result<Value> escape_html(Runtime& runtime, const Text& text) {
  TextWriter out(runtime.budget());
  HEARTH_TRY(out.spend_value(text.size()));
  const std::string_view bytes = text.bytes();
  std::size_t copied = 0;
  for (std::size_t at = bytes.find_first_of("&<>'\""); at != std::string_view::npos;
       at = bytes.find_first_of("&<>'\"", copied)) {
    HEARTH_TRY(out.append(text, copied, at));
    HEARTH_TRY(out.append(entity(bytes[at]), text.origin_at(at)));
    copied = at + 1;
  }
  HEARTH_TRY(out.append(text, copied, bytes.size()));
  HEARTH_ASSIGN(const Value escaped, out.take_value());
  return escaped.as_markup();
}

}  // namespace hearth::chat
