#include "chat/template/formatting.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/fail.h"
#include "chat/template/format_spec.h"
#include "chat/template/print.h"

namespace hearth::chat {
namespace {

/// The values a "%" text consumes, in order or by name.
class PercentValues {
 public:
  explicit PercentValues(const Value& values) : values_(values) {
    const List* list = values.as_list();
    is_tuple_ = list && list->is_tuple();
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
    HEARTH_ASSIGN(value, out.take_value());
    spec.type = 's';
  }
  if (spec.type == 's') {
    HEARTH_ASSIGN(value, to_string(runtime, value));
    spec.align = spec.align == '=' ? '>' : spec.align;
    spec.fill = " ";
  }
  constexpr std::string_view conversions = "sdiufFegxXo";
  if (spec.type == '\0' || conversions.find(spec.type) == std::string_view::npos ||
      spec.precision.value_or(0) > max_format_precision) {
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
    HEARTH_ASSIGN(value, quoted.take_value());
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
  return out.take_value();
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
  return out.take_value();
}

}  // namespace hearth::chat
