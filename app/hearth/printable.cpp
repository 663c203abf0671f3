#include "printable.h"

#include "base/format.h"
#include "base/utf8.h"

namespace hearth::app {
namespace {

bool is_control(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0);
}

/// A control character as C source would write it.
std::string escaped(char32_t c) {
  switch (c) {
    case U'\n':
      return "\\n";
    case U'\r':
      return "\\r";
    case U'\t':
      return "\\t";
    default:
      return format("\\x{:02x}", static_cast<unsigned>(c));
  }
}

}  // namespace

std::string printable(std::string_view text, std::size_t max_bytes) {
  std::string line;
  while (!text.empty()) {
    const auto character = decode_utf8(text);
    std::string next;
    if (is_control(character.code_point)) {
      next = escaped(character.code_point);
    } else {
      append_utf8(next, character.code_point);
    }
    if (line.size() + next.size() > max_bytes) {
      return line + "...";
    }
    line += next;
    text.remove_prefix(character.n_bytes);
  }
  return line;
}

std::string printable_answer(std::string_view text) {
  std::string answer;
  while (!text.empty()) {
    const auto end = text.find_first_of("\n\t");
    answer += printable(text.substr(0, end));
    if (end == std::string_view::npos) {
      break;
    }
    answer += text[end];
    text.remove_prefix(end + 1);
  }
  return answer;
}

}  // namespace hearth::app
