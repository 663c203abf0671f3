#pragma once
/// The values of GGUF metadata, viewed in the bytes of their file.
/// Source: GGUF specification (docs/formats/gguf.md, "Keys and values").

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/assert.h"
#include "base/bytes.h"

namespace hearth::formats {

/// Numbered as the file numbers them, which is also the order of the alternatives of Value.
enum class ValueType : std::uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  string,
  array,
  u64,
  i64,
  f64,
};

inline constexpr std::array<std::string_view, 13> value_type_names{
    "u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "string", "array", "u64", "i64", "f64"};

/// Elements as the file stores them, borrowed: numbers packed at any alignment, strings as u64
/// length + bytes. Whoever makes one has checked that it holds `count` whole elements, that bools
/// are 0 or 1 and that elements are not arrays.
struct Array {
  ValueType element_type{};
  std::uint64_t count{};
  Bytes bytes;
};

/// The index of the alternative is the ValueType.
using Value = std::variant<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, std::uint32_t,
                           std::int32_t, float, bool, std::string_view, Array, std::uint64_t,
                           std::int64_t, double>;
static_assert(std::variant_size_v<Value> == value_type_names.size());

[[nodiscard]] inline ValueType type_of(const Value& value) {
  return static_cast<ValueType>(value.index());
}

[[nodiscard]] constexpr std::string_view name_of(ValueType type) {
  return value_type_names[static_cast<std::size_t>(type)];
}

/// The ValueType that stores a T.
template <class T>
inline constexpr ValueType value_type_of =
    static_cast<ValueType>(Value(std::in_place_type<T>).index());

/// Calls `use(T{})` with the C++ type that stores numbers (or bools) of `type`.
template <class Use>
decltype(auto) with_number_type(ValueType type, Use&& use) {
  switch (type) {
    case ValueType::u8:
      return use(std::uint8_t{});
    case ValueType::i8:
      return use(std::int8_t{});
    case ValueType::u16:
      return use(std::uint16_t{});
    case ValueType::i16:
      return use(std::int16_t{});
    case ValueType::u32:
      return use(std::uint32_t{});
    case ValueType::i32:
      return use(std::int32_t{});
    case ValueType::f32:
      return use(float{});
    case ValueType::boolean:
      return use(bool{});
    case ValueType::u64:
      return use(std::uint64_t{});
    case ValueType::i64:
      return use(std::int64_t{});
    case ValueType::f64:
      return use(double{});
    case ValueType::string:
    case ValueType::array:
      break;
  }
  assertion_failed("a value type that stores one number", __FILE__, __LINE__);
}

/// Bytes of one number of `type`; a string takes at least its length field.
[[nodiscard]] inline std::uint64_t min_element_bytes(ValueType type) {
  if (type == ValueType::string) {
    return sizeof(std::uint64_t);
  }
  return with_number_type(type, [](auto number) -> std::uint64_t { return sizeof number; });
}

/// What a message says was found: "u32 7", "string", "array of 3 i32".
std::string describe(const Value& value);

}  // namespace hearth::formats
