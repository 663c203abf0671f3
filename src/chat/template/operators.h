#pragma once
/// Python's arithmetic, on 64-bit integers that fail instead of wrapping.

#include "base/result.h"
#include "chat/template/ast.h"
#include "chat/template/runtime.h"

namespace hearth::chat {

/// a op b. Errors: invalid_file for kinds that do not combine, division by zero, integer overflow;
/// out_of_memory.
Result<Value> apply_binary(Runtime& runtime, BinaryOperator op, const Value& a, const Value& b);

/// -value. Errors: invalid_file when it is no number, or overflows.
Result<Value> negate(const Value& value);

/// Python's round(value, precision).
[[nodiscard]] double round_decimal(double value, int precision);

}  // namespace hearth::chat
