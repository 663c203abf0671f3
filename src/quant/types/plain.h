#pragma once
/// The types without blocks: every element is stored as itself.

#include <cstdint>
#include <span>

#include "base/half.h"
#include "quant/quant_type.h"

namespace hearth::quant {

struct F32 {
  static constexpr QuantInfo info{
      .name = "F32", .dtype = DType::f32, .block_weights = 1, .block_bytes = 4};
  using Block = float;
  static void decode(const Block& block, std::span<float, 1> weight) { weight[0] = block; }
};

struct F16 {
  static constexpr QuantInfo info{
      .name = "F16", .dtype = DType::f16, .block_weights = 1, .block_bytes = 2};
  using Block = Half;
  static void decode(const Block& block, std::span<float, 1> weight) {
    weight[0] = to_float(block);
  }
};

struct BF16 {
  static constexpr QuantInfo info{
      .name = "BF16", .dtype = DType::bf16, .block_weights = 1, .block_bytes = 2};
  using Block = BFloat16;
  static void decode(const Block& block, std::span<float, 1> weight) {
    weight[0] = to_float(block);
  }
};

/// Decoding rounds to nearest even.
struct F64 {
  static constexpr QuantInfo info{
      .name = "F64", .dtype = DType::f64, .block_weights = 1, .block_bytes = 8};
  using Block = double;
  static void decode(const Block& block, std::span<float, 1> weight) {
    weight[0] = static_cast<float>(block);
  }
};

struct I8 {
  static constexpr QuantInfo info{
      .name = "I8", .dtype = DType::i8, .block_weights = 1, .block_bytes = 1};
  using Block = std::int8_t;
};

struct I16 {
  static constexpr QuantInfo info{
      .name = "I16", .dtype = DType::i16, .block_weights = 1, .block_bytes = 2};
  using Block = std::int16_t;
};

struct I32 {
  static constexpr QuantInfo info{
      .name = "I32", .dtype = DType::i32, .block_weights = 1, .block_bytes = 4};
  using Block = std::int32_t;
};

struct I64 {
  static constexpr QuantInfo info{
      .name = "I64", .dtype = DType::i64, .block_weights = 1, .block_bytes = 8};
  using Block = std::int64_t;
};

static_assert(FloatDecodable<F32> && FloatDecodable<F16> && FloatDecodable<BF16> &&
              FloatDecodable<F64>);
static_assert(QuantType<I8> && QuantType<I16> && QuantType<I32> && QuantType<I64>);

}  // namespace hearth::quant
