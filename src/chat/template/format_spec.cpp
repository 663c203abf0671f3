#include "chat/template/format_spec.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/fail.h"
#include "chat/template/print.h"
#include "chat/template/text_operations.h"
#include "chat/template/unicode.h"

namespace hearth::chat {
namespace {

bool is_align(char c) {
  return c == '<' || c == '>' || c == '^' || c == '=';
}

/// [[fill]align][sign][0][width][,][.precision][type] of Python's "Format Specification
/// Mini-Language".
std::string spell_integer(std::uint64_t magnitude, char type) {
  const int base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
  std::array<char, 64> digits{};
  const auto spelled = std::to_chars(digits.data(), digits.data() + digits.size(), magnitude, base);
  std::string text(digits.data(), spelled.ptr);
  if (type == 'X') {
    for (char& c : text) {
      c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
  }
  return text;
}

std::string spell_with(const char* printf_format, int precision, double value) {
  std::array<char, 512> buffer{};  // 309 digits, a point, max_format_precision digits
  const int n = std::snprintf(buffer.data(), buffer.size(), printf_format, precision, value);
  return {buffer.data(), static_cast<std::size_t>(n)};
}

std::string spell_magnitude(double magnitude, const FormatSpec& spec) {
  const int precision = spec.precision.value_or(6);
  switch (spec.type) {
    case 'f':
    case 'F':
      return spell_with("%.*f", precision, magnitude);
    case 'e':
      return spell_with("%.*e", precision, magnitude);
    case '%':
      return spell_with("%.*f", precision, magnitude * 100) + "%";
    case 'g':
      return spell_with("%.*g", precision, magnitude);
    default:
      return spec.precision ? spell_with("%.*g", precision, magnitude) : spell_real(magnitude);
  }
}

void add_commas(std::string& digits) {
  std::size_t at = std::min(digits.find_first_not_of("0123456789"), digits.size());
  for (; at > 3; at -= 3) {
    digits.insert(at - 3, ",");
  }
}

bool is_text_type(char type) {
  return type == '\0' || type == 's';
}

/// Sign and digits of a number; null when `spec` is not one for numbers.
std::optional<std::pair<std::string, std::string>> spell_number(const Value& value,
                                                                const FormatSpec& spec) {
  constexpr std::string_view integer_types = "dnxXob";
  constexpr std::string_view real_types = "fFegG%";
  const auto integer = value.to_integer();
  const auto real = value.to_real();
  const bool wants_integer =
      integer && (spec.type == '\0' || integer_types.find(spec.type) != std::string_view::npos);
  const bool wants_real = real && (real_types.find(spec.type) != std::string_view::npos ||
                                   (!integer && spec.type == '\0'));
  if (!wants_integer && !wants_real) {
    return std::nullopt;
  }
  const bool is_negative = wants_integer ? *integer < 0 : std::signbit(*real);
  const auto bits = static_cast<std::uint64_t>(integer.value_or(0));
  std::string digits = wants_integer ? spell_integer(is_negative ? 0 - bits : bits, spec.type)
                                     : spell_magnitude(std::abs(*real), spec);
  if (spec.has_commas) {
    add_commas(digits);
  }
  std::string sign = is_negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  return std::pair(std::move(sign), std::move(digits));
}

Result<Value> pad_number(Runtime& runtime, const std::string& sign, const std::string& digits,
                         const FormatSpec& spec, Origin origin) {
  const Text fill(spec.fill, Origin::untrusted);
  if (spec.align != '=') {
    return pad(runtime, Text(sign + digits, origin), spec.width, spec.align ? spec.align : '>',
               fill);
  }
  const auto width = spec.width - static_cast<std::int64_t>(sign.size());
  HEARTH_ASSIGN(const Value padded, pad(runtime, Text(digits, origin), width, '>', fill));
  TextWriter out(runtime.budget());
  HEARTH_TRY(out.append(sign, origin));
  HEARTH_TRY(out.append(*padded.as_text()));
  return out.take_value();
}

}  // namespace

Result<FormatSpec> parse_spec(std::string_view text) {
  FormatSpec spec;
  SpecReader reader(text);
  const std::size_t n_fill = text.empty() ? 0 : code_point_at(text, 0).n_bytes;
  if (n_fill > 0 && n_fill < text.size() && is_align(text[n_fill])) {
    spec.fill = text.substr(0, n_fill);
    reader.drop(n_fill);
  }
  if (is_align(reader.peek())) {
    spec.align = reader.take();
  }
  if (reader.peek() == '+' || reader.peek() == '-' || reader.peek() == ' ') {
    spec.sign = reader.take();
  }
  if (reader.skip('0') && spec.align == '\0') {
    spec.align = '=';
    spec.fill = "0";
  }
  spec.width = reader.take_number().value_or(0);
  spec.has_commas = reader.skip(',');
  if (reader.skip('.')) {
    spec.precision = reader.take_number();
    if (!spec.precision) {
      return fail(ErrorCode::invalid_file, "the format '{}' lacks its precision", text);
    }
  }
  spec.type = reader.take();
  if (!reader.is_done() || spec.precision.value_or(0) > max_format_precision) {
    return fail(ErrorCode::invalid_file, "the format '{}' is not supported", text);
  }
  return spec;
}

Result<Value> format_value(Runtime& runtime, const Value& value, const FormatSpec& spec) {
  if (!value.as_bool() || !is_text_type(spec.type)) {
    if (const auto number = spell_number(value, spec)) {
      return pad_number(runtime, number->first, number->second, spec, value.origin());
    }
  }
  if (!is_text_type(spec.type)) {
    return fail(ErrorCode::invalid_file, "the conversion '{}' cannot print a value of type '{}'",
                spec.type, value.type_name());
  }
  HEARTH_ASSIGN(Value text, to_string(runtime, value));
  if (spec.precision) {
    const std::size_t end =
        byte_offset(text.as_text()->bytes(), static_cast<std::size_t>(*spec.precision));
    text = Value(text.as_text()->slice(0, end));
  }
  return pad(runtime, *text.as_text(), spec.width, spec.align ? spec.align : '<',
             Text(spec.fill, Origin::untrusted));
}

}  // namespace hearth::chat
