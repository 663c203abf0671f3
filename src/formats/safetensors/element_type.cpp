#include "formats/safetensors/element_type.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace hearth::formats {
namespace {

constexpr std::array types{
    ElementTypeInfo{"BOOL", ElementType::boolean, 1},
    ElementTypeInfo{"U8", ElementType::u8, 1},
    ElementTypeInfo{"I8", ElementType::i8, 1, DType::i8},
    ElementTypeInfo{"F8_E4M3", ElementType::f8_e4m3, 1},
    ElementTypeInfo{"F8_E5M2", ElementType::f8_e5m2, 1},
    ElementTypeInfo{"F8_E8M0", ElementType::f8_e8m0, 1},
    ElementTypeInfo{"I16", ElementType::i16, 2, DType::i16},
    ElementTypeInfo{"U16", ElementType::u16, 2},
    ElementTypeInfo{"F16", ElementType::f16, 2, DType::f16},
    ElementTypeInfo{"BF16", ElementType::bf16, 2, DType::bf16},
    ElementTypeInfo{"I32", ElementType::i32, 4, DType::i32},
    ElementTypeInfo{"U32", ElementType::u32, 4},
    ElementTypeInfo{"F32", ElementType::f32, 4, DType::f32},
    ElementTypeInfo{"I64", ElementType::i64, 8, DType::i64},
    ElementTypeInfo{"U64", ElementType::u64, 8},
    ElementTypeInfo{"F64", ElementType::f64, 8, DType::f64},
    ElementTypeInfo{"C64", ElementType::c64, 8},
};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i].type != static_cast<ElementType>(i)) {
      return false;
    }
  }
  return true;
}
static_assert(is_in_order());

}  // namespace

std::span<const ElementTypeInfo> all_element_types() {
  return types;
}

const ElementTypeInfo& info(ElementType type) {
  return types[static_cast<std::size_t>(type)];
}

const ElementTypeInfo* find_element_type(std::string_view name) {
  const auto* found = std::ranges::find(types, name, &ElementTypeInfo::name);
  return found == types.end() ? nullptr : found;
}

}  // namespace hearth::formats
