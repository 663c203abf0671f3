/// Filters on numbers.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "base/fail.h"
#include "chat/template/argument_types.h"
#include "chat/template/filters.h"
#include "chat/template/lookup.h"
#include "chat/template/operators.h"
#include "chat/template/sequence.h"

namespace hearth::chat {
namespace {

/// The origin of what is computed from `value`.
Origin origin_of(const Value& value) {
  const Text* text = value.as_text();
  return text ? text->weakest_origin() : value.origin();
}

std::string_view stripped(std::string_view text) {
  constexpr std::string_view spaces = " \t\n\r\f\v";
  const std::size_t begin = std::min(text.find_first_not_of(spaces), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(spaces) + 1);
}

std::optional<std::int64_t> parse_integer(std::string_view text, int base) {
  text = stripped(text);
  text.remove_prefix(text.starts_with('+') ? 1 : 0);
  std::int64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number, base);
  const bool is_whole = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
  return is_whole ? std::optional(number) : std::nullopt;
}

std::optional<double> parse_real(std::string_view text) {
  const std::string spelling(stripped(text));
  char* end = nullptr;
  const double number = std::strtod(spelling.c_str(), &end);
  const bool is_hexadecimal = spelling.find_first_of("xX") != std::string::npos;
  const bool is_whole = !spelling.empty() && end == spelling.c_str() + spelling.size();
  return is_whole && !is_hexadecimal ? std::optional(number) : std::nullopt;
}

std::optional<double> real_from(const Value& value) {
  const Text* text = value.as_text();
  return text ? parse_real(text->bytes()) : value.to_real();
}

std::optional<std::int64_t> truncated(std::optional<double> real) {
  const bool fits = real && std::abs(*real) < 0x1p63;
  return fits ? std::optional(static_cast<std::int64_t>(*real)) : std::nullopt;
}

Result<Value> int_filter(Runtime& /*runtime*/, const Value& subject, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound, bind_arguments("int", arguments, {"default", "base"}));
  HEARTH_ASSIGN(const auto base, integer_or(bound[1], 10));
  if (base < 2 || base > 36) {
    return fail(ErrorCode::invalid_file, "int: the base {} is not between 2 and 36", base);
  }
  if (const auto* reason = subject.undefined_reason()) {
    return fail(ErrorCode::invalid_file, "{}", *reason);
  }
  const Text* text = subject.as_text();
  auto integer = text ? parse_integer(text->bytes(), static_cast<int>(base)) : subject.to_integer();
  if (!integer) {
    integer = truncated(real_from(subject));
  }
  if (integer) {
    return Value(*integer, origin_of(subject));
  }
  return bound[0].is_undefined() ? Value::trusted(std::int64_t{0}) : bound[0];
}

Result<Value> float_filter(Runtime& /*runtime*/, const Value& subject, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound, bind_arguments("float", arguments, {"default"}));
  if (const auto* reason = subject.undefined_reason()) {
    return fail(ErrorCode::invalid_file, "{}", *reason);
  }
  if (const auto real = real_from(subject)) {
    return Value(*real, origin_of(subject));
  }
  return bound[0].is_undefined() ? Value(0.0, Origin::trusted) : bound[0];
}

Result<Value> abs_filter(Runtime& /*runtime*/, const Value& subject, const Arguments& arguments) {
  HEARTH_TRY(bind_arguments("abs", arguments, {}));
  const auto integer = subject.to_integer();
  if (integer && *integer >= 0) {
    return Value(*integer, subject.origin());
  }
  if (subject.is_number() && !integer) {
    return Value(std::abs(*subject.to_real()), subject.origin());
  }
  return negate(subject);
}

/// Rounds half to even on the decimal spelling, as Python's round() does; "ceil" and "floor" scale
/// first.
Result<Value> round_filter(Runtime& /*runtime*/, const Value& subject, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound, bind_arguments("round", arguments, {"precision", "method"}));
  HEARTH_ASSIGN(const auto precision, integer_or(bound[0], 0));
  HEARTH_ASSIGN(const Text* method, optional_text(bound[1]));
  const std::string_view how = method ? method->bytes() : "common";
  const auto number = subject.to_real();
  constexpr std::int64_t max_precision = 300;
  if (!number || std::abs(precision) > max_precision) {
    return fail(ErrorCode::invalid_file, "round: needs a number and a precision of at most {}",
                max_precision);
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  if (how == "ceil" || how == "floor") {
    const double scaled = *number * scale;
    return Value((how == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale,
                 subject.origin());
  }
  if (how != "common") {
    return fail(ErrorCode::invalid_file, "round: the method must be common, ceil or floor");
  }
  if (subject.to_integer() && precision >= 0) {
    return Value(*subject.to_integer(), subject.origin());
  }
  return Value(round_decimal(*number, static_cast<int>(precision)), subject.origin());
}

Result<Value> sum_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound, bind_arguments("sum", arguments, {"attribute", "start"}));
  HEARTH_ASSIGN(const Value list, to_list(runtime, subject));
  Value sum = bound[1].is_undefined() ? Value::trusted(std::int64_t{0}) : bound[1];
  for (const Value& item : list.as_list()->items) {
    HEARTH_ASSIGN(const Value term, bound[0].is_undefined() || bound[0].is_none()
                                        ? Result<Value>(item)
                                        : lookup_path(runtime, item, bound[0]));
    HEARTH_ASSIGN(sum, apply_binary(runtime, BinaryOperator::add, sum, term));
  }
  return sum;
}

constexpr std::array number_filters{
    NamedFilter{"int", int_filter}, NamedFilter{"float", float_filter},
    NamedFilter{"abs", abs_filter}, NamedFilter{"round", round_filter},
    NamedFilter{"sum", sum_filter},
};

}  // namespace

Filter find_number_filter(std::string_view name) {
  return find_in(number_filters, name);
}

}  // namespace hearth::chat
