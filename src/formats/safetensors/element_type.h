#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "tensor/dtype.h"

namespace hearth::formats {

/// The element types that safetensors files name.
enum class ElementType : std::uint8_t {
  boolean,
  u8,
  i8,
  f8_e4m3,
  f8_e5m2,
  f8_e8m0,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  i64,
  u64,
  f64,
  c64,
};

struct ElementTypeInfo {
  std::string_view name;  // as the header spells it
  ElementType type{};
  std::uint64_t n_bytes{};
  std::optional<DType> dtype{};  // where GGUF has the same type
};

/// All of them, in the order of the enumeration.
std::span<const ElementTypeInfo> all_element_types();

const ElementTypeInfo& info(ElementType type);
/// nullptr when no type has this name.
const ElementTypeInfo* find_element_type(std::string_view name);

}  // namespace hearth::formats
