#include "chat/template/operators.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>

#include "base/checked.h"
#include "base/fail.h"
#include "chat/template/formatting.h"
#include "chat/template/html.h"
#include "chat/template/text_operations.h"

namespace hearth::chat {
namespace {

constexpr std::array<std::string_view, 7> operator_symbols{"+", "-", "*", "/", "//", "%", "**"};

std::string_view symbol_of(BinaryOperator op) {
  return operator_symbols[static_cast<std::size_t>(op)];
}

Failure type_error(BinaryOperator op, const Value& a, const Value& b) {
  for (const Value* value : {&a, &b}) {
    if (const auto* reason = value->undefined_reason()) {
      return fail(ErrorCode::invalid_file, "{}", *reason);
    }
  }
  return fail(ErrorCode::invalid_file, "'{}' does not combine '{}' and '{}'", symbol_of(op),
              a.type_name(), b.type_name());
}

Failure division_by_zero() {
  return fail(ErrorCode::invalid_file, "division by zero");
}

std::optional<std::int64_t> checked_subtract(std::int64_t a, std::int64_t b) {
  std::int64_t difference = 0;
  return __builtin_sub_overflow(a, b, &difference) ? std::nullopt : std::optional(difference);
}

/// By squaring; nothing on overflow. Requires exponent >= 0.
std::optional<std::int64_t> checked_power(std::int64_t base, std::int64_t exponent) {
  std::optional<std::int64_t> result = 1;
  while (result && exponent > 0) {
    if (exponent % 2 == 1) {
      result = checked_mul(*result, base);
    }
    exponent /= 2;
    const auto squared = checked_mul(base, base);
    if (exponent > 0 && !squared) {
      return std::nullopt;
    }
    base = squared.value_or(0);
  }
  return result;
}

/// Rounds toward minus infinity; INT64_MIN // -1 does not fit.
std::optional<std::int64_t> floor_divide(std::int64_t a, std::int64_t b) {
  if (a == std::numeric_limits<std::int64_t>::min() && b == -1) {
    return std::nullopt;
  }
  const bool is_inexact_negative = a % b != 0 && (a < 0) != (b < 0);
  return a / b - (is_inexact_negative ? 1 : 0);
}

/// Has the sign of the divisor.
std::int64_t floor_modulo(std::int64_t a, std::int64_t b) {
  const std::int64_t rest = b == -1 ? 0 : a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Result<Value> integer_arithmetic(BinaryOperator op, std::int64_t a, std::int64_t b, Origin origin) {
  const auto checked = [&](std::optional<std::int64_t> result) -> Result<Value> {
    if (!result) {
      return fail(ErrorCode::invalid_file, "{} {} {} does not fit in 64 bits", a, symbol_of(op), b);
    }
    return Value(*result, origin);
  };
  const bool divides = op == BinaryOperator::divide || op == BinaryOperator::floor_divide ||
                       op == BinaryOperator::modulo;
  if (divides && b == 0) {
    return division_by_zero();
  }
  switch (op) {
    case BinaryOperator::add:
      return checked(checked_add(a, b));
    case BinaryOperator::subtract:
      return checked(checked_subtract(a, b));
    case BinaryOperator::multiply:
      return checked(checked_mul(a, b));
    case BinaryOperator::divide:
      return Value(static_cast<double>(a) / static_cast<double>(b), origin);
    case BinaryOperator::floor_divide:
      return checked(floor_divide(a, b));
    case BinaryOperator::modulo:
      return Value(floor_modulo(a, b), origin);
    case BinaryOperator::power:
      break;
  }
  if (b >= 0) {
    return checked(checked_power(a, b));
  }
  if (a == 0) {
    return division_by_zero();
  }
  return Value(std::pow(static_cast<double>(a), static_cast<double>(b)), origin);
}

double floor_modulo(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Result<Value> real_arithmetic(BinaryOperator op, double a, double b, Origin origin) {
  const bool divides = op == BinaryOperator::divide || op == BinaryOperator::floor_divide ||
                       op == BinaryOperator::modulo;
  if (divides && b == 0) {
    return division_by_zero();
  }
  switch (op) {
    case BinaryOperator::add:
      return Value(a + b, origin);
    case BinaryOperator::subtract:
      return Value(a - b, origin);
    case BinaryOperator::multiply:
      return Value(a * b, origin);
    case BinaryOperator::divide:
      return Value(a / b, origin);
    case BinaryOperator::floor_divide:
      return Value(std::floor(a / b), origin);
    case BinaryOperator::modulo:
      return Value(floor_modulo(a, b), origin);
    case BinaryOperator::power:
      break;
  }
  return Value(std::pow(a, b), origin);
}

Result<Value> add_text(Runtime& runtime, const Value& a, const Value& b) {
  if (a.is_markup() != b.is_markup()) {  // Python escapes the plain side
    HEARTH_ASSIGN(const Value left, a.is_markup() ? a : escape_html(runtime, *a.as_text()));
    HEARTH_ASSIGN(const Value right, b.is_markup() ? b : escape_html(runtime, *b.as_text()));
    return add_text(runtime, left, right);
  }
  TextWriter out(runtime.budget());
  HEARTH_TRY(out.append(*a.as_text()));
  HEARTH_TRY(out.append(*b.as_text()));
  HEARTH_ASSIGN(const Value sum, out.take_value());
  return a.is_markup() ? sum.as_markup() : sum;
}

Result<Value> make_like(Runtime& runtime, const List& list, std::vector<Value> items) {
  return runtime.make_list(std::move(items), list.kind);
}

Result<Value> add_lists(Runtime& runtime, const List& a, const List& b) {
  HEARTH_TRY(runtime.budget().spend_list(a.items.size() + b.items.size()));
  std::vector<Value> items = a.items;
  items.insert(items.end(), b.items.begin(), b.items.end());
  return make_like(runtime, a, std::move(items));
}

Result<Value> repeat_list(Runtime& runtime, const List& list, std::int64_t n) {
  const std::int64_t n_copies = list.items.empty() ? 0 : std::max(n, std::int64_t{0});
  const auto n_items = checked_mul(list.items.size(), static_cast<std::size_t>(n_copies));
  HEARTH_TRY(
      runtime.budget().spend_list(n_items.value_or(std::numeric_limits<std::size_t>::max())));
  std::vector<Value> items;
  for (std::int64_t i = 0; i < n_copies; ++i) {
    items.insert(items.end(), list.items.begin(), list.items.end());
  }
  return make_like(runtime, list, std::move(items));
}

/// text * n or list * n, in either order; nothing when that is not what it is.
std::optional<Result<Value>> repeat_either(Runtime& runtime, const Value& a, const Value& b) {
  const bool counts_first = a.to_integer().has_value();
  const auto n = counts_first ? a.to_integer() : b.to_integer();
  const Value& repeated = counts_first ? b : a;
  if (n && repeated.as_text()) {
    return repeat(runtime, *repeated.as_text(), *n);
  }
  if (n && repeated.as_list()) {
    return repeat_list(runtime, *repeated.as_list(), *n);
  }
  return std::nullopt;
}

}  // namespace

Result<Value> apply_binary(Runtime& runtime, BinaryOperator op, const Value& a, const Value& b) {
  const Origin origin = weaker(a.origin(), b.origin());
  if (a.to_integer() && b.to_integer()) {
    return integer_arithmetic(op, *a.to_integer(), *b.to_integer(), origin);
  }
  if (a.is_number() && b.is_number()) {
    return real_arithmetic(op, *a.to_real(), *b.to_real(), origin);
  }
  if (op == BinaryOperator::add && a.is_string() && b.is_string()) {
    return add_text(runtime, a, b);
  }
  if (op == BinaryOperator::add && a.as_list() && b.as_list() &&
      a.as_list()->kind == b.as_list()->kind && a.as_list()->is_indexed()) {
    return add_lists(runtime, *a.as_list(), *b.as_list());
  }
  if (op == BinaryOperator::modulo && a.is_string()) {
    return format_percent(runtime, *a.as_text(), b);
  }
  if (op == BinaryOperator::multiply) {
    if (auto repeated = repeat_either(runtime, a, b)) {
      return std::move(*repeated);
    }
  }
  return type_error(op, a, b);
}

Result<Value> negate(const Value& value) {
  if (const auto integer = value.to_integer()) {
    return integer_arithmetic(BinaryOperator::subtract, 0, *integer, value.origin());
  }
  if (const auto real = value.to_real()) {
    return Value(-*real, value.origin());
  }
  if (const auto* reason = value.undefined_reason()) {
    return fail(ErrorCode::invalid_file, "{}", *reason);
  }
  return fail(ErrorCode::invalid_file, "a value of type '{}' has no sign", value.type_name());
}

double round_decimal(double value, int precision) {
  if (precision < 0) {
    const double scale = std::pow(10.0, -precision);
    return std::nearbyint(value / scale) * scale;
  }
  std::array<char, 640> buffer{};  // 309 digits, a point, 300 digits
  // printf rounds the exact binary value, half to even, which is what Python's round() does.
  std::snprintf(buffer.data(), buffer.size(), "%.*f", precision, value);
  return std::strtod(buffer.data(), nullptr);
}

}  // namespace hearth::chat
