#include "chat/template/formatting.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>

#include "base/fail.h"
#include "chat/template/print.h"
#include "chat/template/text_operations.h"
#include "chat/template/unicode.h"

namespace hearth::chat {
namespace {

constexpr int max_precision = 100;

/// How one value is to be spelled: the union of both mini-languages.
struct FormatSpec {
  std::string fill = " ";
  char align = '\0';  // '<', '>', '^', '=' (padding after the sign), or the kind's default
  char sign = '-';    // '+' and ' ' mark positive numbers too
  bool has_commas = false;
  int width = 0;
  std::optional<int> precision;
  char type = '\0';
};

/// A cursor over the bytes of a specification.
class SpecReader {
 public:
  explicit SpecReader(std::string_view text) : text_(text) {}

  [[nodiscard]] char peek() const { return text_.empty() ? '\0' : text_.front(); }
  [[nodiscard]] bool is_done() const { return text_.empty(); }
  [[nodiscard]] std::string_view rest() const { return text_; }
  void drop(std::size_t n) { text_.remove_prefix(n); }

  bool skip(char c) {
    const bool matches = !text_.empty() && text_.front() == c;
    drop(matches ? 1 : 0);
    return matches;
  }
  char take() {
    const char c = peek();
    drop(is_done() ? 0 : 1);
    return c;
  }
  /// A decimal number; nothing without digits. Numbers beyond an int fail later as too large.
  std::optional<int> take_number() {
    int value = 0;
    const auto parsed = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (parsed.ptr == text_.data() || text_.front() == '-') {
      return std::nullopt;
    }
    drop(static_cast<std::size_t>(parsed.ptr - text_.data()));
    return parsed.ec == std::errc() ? value : std::numeric_limits<int>::max();
  }

 private:
  std::string_view text_;
};

bool is_align(char c) {
  return c == '<' || c == '>' || c == '^' || c == '=';
}

/// [[fill]align][sign][0][width][,][.precision][type] of Python's "Format Specification
/// Mini-Language".
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
  if (!reader.is_done() || spec.precision.value_or(0) > max_precision) {
    return fail(ErrorCode::invalid_file, "the format '{}' is not supported", text);
  }
  return spec;
}

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
  std::array<char, 512> buffer{};  // 309 digits, a point, max_precision digits
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
  return Value(out.take());
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

/// The values a "%" text consumes, in order or by name.
class PercentValues {
 public:
  explicit PercentValues(const Value& values) : values_(values) {
    const List* list = values.as_list();
    is_tuple_ = list && list->is_tuple;
  }

  Result<Value> next() {
    if (is_tuple_ ? at_ < values_.as_list()->items.size() : at_ == 0) {
      return is_tuple_ ? values_.as_list()->items[at_++] : (++at_, values_);
    }
    return fail(ErrorCode::invalid_file, "not enough values for the '%' format");
  }

  Result<Value> named(std::string_view name) {
    const Dict* dict = values_.as_dict();
    const Value* value = dict ? dict->find_name(name) : nullptr;
    if (!value) {
      return fail(ErrorCode::invalid_file, "no value '{}' for the '%' format", name);
    }
    at_ = 1;
    return *value;
  }

  [[nodiscard]] bool is_used_up() const {
    return is_tuple_ ? at_ == values_.as_list()->items.size()
                     : at_ > 0 || values_.as_dict() || values_.as_list();
  }

 private:
  const Value& values_;
  bool is_tuple_ = false;
  std::size_t at_ = 0;
};

/// The flags, width, precision and conversion after a '%'.
FormatSpec parse_conversion(SpecReader& reader) {
  FormatSpec spec;
  spec.align = '>';
  constexpr std::string_view flags = "-+ 0#";
  while (!reader.is_done() && flags.find(reader.peek()) != std::string_view::npos) {
    const char flag = reader.take();
    if (flag == '-') {
      spec.align = '<';
    } else if (flag == '0' && spec.align != '<') {
      spec.align = '=';
      spec.fill = "0";
    } else if (flag == '+' || flag == ' ') {
      spec.sign = flag;
    }
  }
  spec.width = reader.take_number().value_or(0);
  if (reader.skip('.')) {
    spec.precision = reader.take_number().value_or(0);
  }
  spec.type = reader.take();
  return spec;
}

Result<Value> convert(Runtime& runtime, Value value, FormatSpec spec) {
  if (spec.type == 'r') {
    TextWriter out(runtime.budget());
    HEARTH_TRY(write_repr(out, value));
    value = Value(out.take());
    spec.type = 's';
  }
  if (spec.type == 's') {
    HEARTH_ASSIGN(value, to_string(runtime, value));
    spec.align = spec.align == '=' ? '>' : spec.align;
    spec.fill = " ";
  }
  constexpr std::string_view conversions = "sdiufFegxXo";
  if (spec.type == '\0' || conversions.find(spec.type) == std::string_view::npos ||
      spec.precision.value_or(0) > max_precision) {
    return fail(ErrorCode::invalid_file, "the conversion '%{}' is not supported", spec.type);
  }
  const bool is_integer = spec.type == 'd' || spec.type == 'i' || spec.type == 'u';
  if (const auto* real = value.as_real(); is_integer && real) {
    if (!(std::abs(*real) < 0x1p63)) {
      return fail(ErrorCode::invalid_file, "'%d' needs a number that fits in 64 bits");
    }
    value = Value(static_cast<std::int64_t>(*real), value.origin());
  }
  spec.type = is_integer ? 'd' : spec.type;
  return format_value(runtime, value, spec);
}

/// A replacement field between braces: the argument's name or number, and its specification.
struct Field {
  std::string_view name;
  std::string_view spec;
  bool wants_repr = false;
};

Field parse_field(std::string_view field) {
  Field parsed;
  const std::size_t colon = std::min(field.find(':'), field.size());
  parsed.spec = field.substr(std::min(colon + 1, field.size()));
  parsed.name = field.substr(0, colon);
  if (const std::size_t mark = parsed.name.find('!'); mark != std::string_view::npos) {
    parsed.wants_repr = parsed.name.substr(mark) == "!r";
    parsed.name = parsed.name.substr(0, mark);
  }
  return parsed;
}

Result<Value> find_field(std::string_view name, const Arguments& arguments, std::size_t& next) {
  if (const Value* value = arguments.find_keyword(name)) {
    return *value;
  }
  std::size_t index = 0;
  const auto parsed = std::from_chars(name.data(), name.data() + name.size(), index);
  if (name.empty()) {
    index = next++;
  } else if (parsed.ec != std::errc() || parsed.ptr != name.data() + name.size()) {
    return fail(ErrorCode::invalid_file, "format() has no argument '{}'", name);
  }
  if (index >= arguments.positional.size()) {
    return fail(ErrorCode::invalid_file, "format() has no argument number {}", index);
  }
  return arguments.positional[index];
}

Result<void> write_field(Runtime& runtime, TextWriter& out, std::string_view spelled,
                         const Arguments& arguments, std::size_t& next) {
  const Field field = parse_field(spelled);
  HEARTH_ASSIGN(Value value, find_field(field.name, arguments, next));
  if (field.wants_repr) {
    TextWriter quoted(runtime.budget());
    HEARTH_TRY(write_repr(quoted, value));
    value = Value(quoted.take());
  }
  HEARTH_ASSIGN(const FormatSpec spec, parse_spec(field.spec));
  HEARTH_ASSIGN(const Value formatted, format_value(runtime, value, spec));
  return out.append(*formatted.as_text());
}

}  // namespace

Result<Value> format_percent(Runtime& runtime, const Text& text, const Value& values) {
  TextWriter out(runtime.budget());
  PercentValues source(values);
  const std::string_view bytes = text.bytes();
  std::size_t copied = 0;
  for (std::size_t at = bytes.find('%'); at != std::string_view::npos;
       at = bytes.find('%', copied)) {
    HEARTH_TRY(out.append(text, copied, at));
    SpecReader reader(bytes.substr(at + 1));
    std::optional<std::string_view> name;
    if (reader.skip('(')) {
      name = reader.rest().substr(0, reader.rest().find(')'));
      reader.drop(std::min(name->size() + 1, reader.rest().size()));
    }
    const FormatSpec spec = parse_conversion(reader);
    copied = bytes.size() - reader.rest().size();
    if (spec.type == '%') {
      HEARTH_TRY(out.append(text, copied - 1, copied));
      continue;
    }
    HEARTH_ASSIGN(auto value, name ? source.named(*name) : source.next());
    HEARTH_ASSIGN(const Value converted, convert(runtime, std::move(value), spec));
    HEARTH_TRY(out.append(*converted.as_text()));
  }
  HEARTH_TRY(out.append(text, copied, bytes.size()));
  if (!source.is_used_up()) {
    return fail(ErrorCode::invalid_file, "too many values for the '%' format");
  }
  return Value(out.take());
}

Result<Value> format_braces(Runtime& runtime, const Text& text, const Arguments& arguments) {
  TextWriter out(runtime.budget());
  const std::string_view bytes = text.bytes();
  std::size_t next = 0;
  std::size_t copied = 0;
  for (std::size_t at = bytes.find_first_of("{}"); at != std::string_view::npos;
       at = bytes.find_first_of("{}", copied)) {
    HEARTH_TRY(out.append(text, copied, at));
    if (at + 1 < bytes.size() && bytes[at + 1] == bytes[at]) {  // a doubled brace is one
      HEARTH_TRY(out.append(text, at, at + 1));
      copied = at + 2;
      continue;
    }
    const std::size_t close = bytes.find('}', at);
    if (bytes[at] == '}' || close == std::string_view::npos) {
      return fail(ErrorCode::invalid_file, "format(): a single '{}'", bytes[at]);
    }
    HEARTH_TRY(write_field(runtime, out, bytes.substr(at + 1, close - at - 1), arguments, next));
    copied = close + 1;
  }
  HEARTH_TRY(out.append(text, copied, bytes.size()));
  return Value(out.take());
}

}  // namespace hearth::chat
