#include "chat/template/print.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/format.h"
#include "chat/template/unicode.h"

namespace hearth::chat {
namespace {

std::string spell_scalar(const Value& value) {
  if (const auto* b = value.as_bool()) {
    return *b ? "True" : "False";
  }
  if (const auto* i = value.as_integer()) {
    return std::to_string(*i);
  }
  if (const auto* d = value.as_real()) {
    return spell_real(*d);
  }
  return value.is_none() ? "None" : "";  // undefined prints as nothing
}

/// Python escapes what is not printable; of the many such characters these are the ones text may
/// contain.
bool is_printable(char32_t c) {
  const bool is_control = c < 0x20 || (c >= 0x7F && c <= 0xA0) || c == 0xAD;
  const bool is_format = (c >= 0x200B && c <= 0x200F) || (c >= 0x2028 && c <= 0x202E) ||
                         (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF;
  const bool is_surrogate_or_private = c >= 0xD800 && c <= 0xF8FF;
  return !is_control && !is_format && !is_surrogate_or_private && (c <= 0x7F || !is_space(c));
}

std::string escape(char32_t c) {
  switch (c) {
    case U'\n':
      return "\\n";
    case U'\r':
      return "\\r";
    case U'\t':
      return "\\t";
    default:
      break;
  }
  const auto code = static_cast<std::uint32_t>(c);
  return c <= 0xFF     ? format("\\x{:02x}", code)
         : c <= 0xFFFF ? format("\\u{:04x}", code)
                       : format("\\U{:08x}", code);
}

Result<void> write_quoted(TextWriter& out, const Text& text) {
  const std::string_view bytes = text.bytes();
  const bool has_single = bytes.find('\'') != std::string_view::npos;
  const bool has_double = bytes.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  HEARTH_TRY(out.append({&quote, 1}, Origin::untrusted));
  for (std::size_t at = 0; at < bytes.size();) {
    const CodePoint c = code_point_at(bytes, at);
    const bool needs_backslash = c.value == U'\\' || c.value == static_cast<char32_t>(quote);
    if (needs_backslash) {
      HEARTH_TRY(out.append("\\", text.origin_at(at)));
    }
    if (needs_backslash || is_printable(c.value)) {
      HEARTH_TRY(out.append(text, at, at + c.n_bytes));
    } else {
      HEARTH_TRY(out.append(escape(c.value), text.origin_at(at)));
    }
    at += c.n_bytes;
  }
  return out.append({&quote, 1}, Origin::untrusted);
}

Result<void> write_list(TextWriter& out, const List& list) {
  HEARTH_TRY(out.append(list.is_tuple() ? "(" : "[", Origin::untrusted));
  std::string_view separator = "";
  for (const Value& item : list.items) {
    HEARTH_TRY(out.append(separator, Origin::untrusted));
    HEARTH_TRY(write_repr(out, item));
    separator = ", ";
  }
  const bool is_single = list.is_tuple() && list.items.size() == 1;
  return out.append(is_single ? ",)" : list.is_tuple() ? ")" : "]", Origin::untrusted);
}

Result<void> write_dict(TextWriter& out, const Dict& dict) {
  HEARTH_TRY(out.append("{", Origin::untrusted));
  std::string_view separator = "";
  for (const auto& [key, value] : dict.entries()) {
    HEARTH_TRY(out.append(separator, Origin::untrusted));
    HEARTH_TRY(write_repr(out, key));
    HEARTH_TRY(out.append(": ", Origin::untrusted));
    HEARTH_TRY(write_repr(out, value));
    separator = ", ";
  }
  return out.append("}", Origin::untrusted);
}

}  // namespace

std::string spell_real(double value) {
  if (std::isnan(value)) {
    return "nan";
  }
  if (std::isinf(value)) {
    return value < 0 ? "-inf" : "inf";
  }
  std::array<char, 32> buffer{};  // 17 digits, sign, point, exponent
  const auto spelled = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                     std::chars_format::scientific);
  std::string scientific(buffer.data(), spelled.ptr);
  const std::size_t e = scientific.find('e');
  const int exponent = std::atoi(scientific.c_str() + e + 1);
  if (exponent < -4 || exponent >= 16) {
    return scientific;
  }
  const std::string sign = scientific[0] == '-' ? "-" : "";
  std::string digits;
  for (const char c : scientific.substr(0, e)) {
    if (c >= '0' && c <= '9') {
      digits.push_back(c);
    }
  }
  if (exponent < 0) {
    return sign + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  }
  const auto n_whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= n_whole) {
    return sign + digits + std::string(n_whole - digits.size(), '0') + ".0";
  }
  return sign + digits.substr(0, n_whole) + "." + digits.substr(n_whole);
}

Result<void> write_str(TextWriter& out, const Value& value) {
  const Text* text = value.as_text();
  return text ? out.append(*text) : write_repr(out, value);
}

Result<void> write_repr(TextWriter& out, const Value& value) {
  const Text* text = value.as_text();
  HEARTH_TRY(out.spend_value(text ? text->size() : 0));
  if (text) {
    return write_quoted(out, *text);
  }
  if (const List* list = value.as_list()) {
    return write_list(out, *list);
  }
  if (const Dict* dict = value.as_dict()) {
    return write_dict(out, *dict);
  }
  if (const Object* object = value.as_object()) {
    return out.append(format("<{}>", object->kind()), Origin::untrusted);
  }
  return out.append(spell_scalar(value), value.origin());
}

Result<Value> to_string(Runtime& runtime, const Value& value) {
  if (value.is_string()) {
    return value;
  }
  TextWriter out(runtime.budget());
  HEARTH_TRY(write_str(out, value));
  return out.take_value();
}

}  // namespace hearth::chat
