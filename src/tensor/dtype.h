#pragma once

#include <cstdint>

namespace hearth {

/// Element type of a tensor, numbered as GGUF numbers its tensor types.
/// The types that computations use have names here; every block format names its own value in
/// quant/types/.
enum class DType : std::uint8_t {
  f32 = 0,
  f16 = 1,
  i8 = 24,
  i16 = 25,
  i32 = 26,
  i64 = 27,
  f64 = 28,
  bf16 = 30,
};

}  // namespace hearth
