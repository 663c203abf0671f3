#include "model/synth/random_blocks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <vector>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/half.h"
#include "quant/all_types.h"
#include "quant/registry.h"

namespace hearth::model {
namespace {

using quant::BF16, quant::F16, quant::F32, quant::IQ4_NL, quant::IQ4_XS, quant::MXFP4, quant::NVFP4,
    quant::Q2_K, quant::Q3_K, quant::Q4_0, quant::Q4_1, quant::Q4_K, quant::Q5_0, quant::Q5_1,
    quant::Q5_K, quant::Q6_K, quant::Q8_0;

constexpr std::size_t n_variants = 256;  // of the scales in a block; a random byte chooses

/// What the scale of a tensor is multiplied by to become that of a block.
using Factor = float (*)(std::size_t variant);

/// 1/2 to 3/2.
float positive(std::size_t variant) {
  return 0.5f + (static_cast<float>(variant) + 0.5f) / n_variants;
}

/// The same with either sign, so that codes with one value more below zero than above do no harm.
float either_sign(std::size_t variant) {
  return variant % 2 == 0 ? positive(variant) : -positive(variant);
}

/// -1 to 1, for types that store every weight as a number.
float through_zero(std::size_t variant) {
  return (static_cast<float>(variant) + 0.5f) / (n_variants / 2) - 1;
}

/// How a block stores a scale.
struct Encoding {
  std::size_t n_bytes = 0;
  std::uint32_t (*encode)(float scale) = nullptr;  // into the low n_bytes
};

std::uint32_t encode_f32(float scale) {
  return std::bit_cast<std::uint32_t>(scale);
}

std::uint32_t encode_f16(float scale) {
  return to_half(scale).bits;
}

std::uint32_t encode_bf16(float scale) {
  return to_bfloat16(scale).bits;
}

/// The power of two nearest to `scale`: 2^(code - 128), as MXFP4 counts.
std::uint32_t encode_e8m0(float scale) {
  constexpr float sqrt_2 = 1.41421356f;
  return static_cast<std::uint32_t>(128 + std::ilogb(scale * sqrt_2));
}

/// The code of the nearest scale that NVFP4 has.
std::uint32_t encode_e4m3(float scale) {
  const auto* const first = quant::halved_e4m3.data();
  const auto* const nan = first + 0x7f;
  const auto distance = [scale](float value) { return std::abs(value - scale); };
  return static_cast<std::uint32_t>(
      std::ranges::min_element(first, nan, std::ranges::less(), distance) - first);
}

constexpr Encoding f32{4, encode_f32};
constexpr Encoding f16{2, encode_f16};
constexpr Encoding bf16{2, encode_bf16};
constexpr Encoding e8m0{1, encode_e8m0};
constexpr Encoding e4m3{1, encode_e4m3};

/// A scale in a block.
struct Field {
  std::size_t offset = 0;
  float ratio = 0;  // to the block's first scale; 0 where there is no field
};

}  // namespace

/// Where and how the blocks of a type store their scales; all their other bytes may be anything.
struct BlockScales {
  DType dtype{};
  Encoding encoding;
  Factor factor = nullptr;
  std::array<Field, 4> fields;
};

namespace {

template <quant::QuantType T, class... Fields>
constexpr BlockScales row(Encoding encoding, Factor factor, Fields... fields) {
  return {T::info.dtype, encoding, factor, {fields...}};
}

// Offsets and minima cancel the mean of the codes.
constexpr std::array all_scales{
    row<F32>(f32, through_zero, Field{0, 1}),
    row<F16>(f16, through_zero, Field{0, 1}),
    row<BF16>(bf16, through_zero, Field{0, 1}),
    row<Q4_0>(f16, either_sign, Field{offsetof(Q4_0::Block, scale), 1}),
    row<Q4_1>(f16, positive, Field{offsetof(Q4_1::Block, scale), 1},
              Field{offsetof(Q4_1::Block, offset), -7.5f}),
    row<Q5_0>(f16, either_sign, Field{offsetof(Q5_0::Block, scale), 1}),
    row<Q5_1>(f16, positive, Field{offsetof(Q5_1::Block, scale), 1},
              Field{offsetof(Q5_1::Block, offset), -15.5f}),
    row<Q8_0>(f16, either_sign, Field{offsetof(Q8_0::Block, scale), 1}),
    row<Q2_K>(f16, positive, Field{offsetof(Q2_K::Block, scale), 1},
              Field{offsetof(Q2_K::Block, min_scale), 1.5f}),
    row<Q3_K>(f16, either_sign, Field{offsetof(Q3_K::Block, scale), 1}),
    row<Q4_K>(f16, positive, Field{offsetof(Q4_K::Block, scale), 1},
              Field{offsetof(Q4_K::Block, min_scale), 7.5f}),
    row<Q5_K>(f16, positive, Field{offsetof(Q5_K::Block, scale), 1},
              Field{offsetof(Q5_K::Block, min_scale), 15.5f}),
    row<Q6_K>(f16, either_sign, Field{offsetof(Q6_K::Block, scale), 1}),
    row<IQ4_NL>(f16, either_sign, Field{offsetof(IQ4_NL::Block, scale), 1}),
    row<IQ4_XS>(f16, either_sign, Field{offsetof(IQ4_XS::Block, scale), 1}),
    row<MXFP4>(e8m0, positive, Field{offsetof(MXFP4::Block, exponent), 1}),
    row<NVFP4>(e4m3, positive, Field{0, 1}, Field{1, 1}, Field{2, 1}, Field{3, 1}),
};

const BlockScales* find_scales(DType dtype) {
  const auto found = std::ranges::find(all_scales, dtype, &BlockScales::dtype);
  return found == all_scales.end() ? nullptr : &*found;
}

/// The bytes of every variant of one field.
struct FieldVariants {
  std::size_t offset = 0;
  std::array<std::uint32_t, n_variants> encoded{};
};

std::vector<FieldVariants> encode_variants(const BlockScales& scales, float scale) {
  std::vector<FieldVariants> variants;
  for (const Field& field : scales.fields) {
    if (field.ratio == 0) {
      break;
    }
    auto& [offset, encoded] = variants.emplace_back();
    offset = field.offset;
    for (std::size_t i = 0; i < n_variants; ++i) {
      encoded[i] = scales.encoding.encode(scale * scales.factor(i) * field.ratio);
    }
  }
  return variants;
}

/// Replaces the scales of blocks of random bytes. The first byte of the first scale chooses.
template <std::size_t n_scale_bytes>
void write_scales(std::span<const FieldVariants> fields, std::size_t block_bytes,
                  std::span<std::byte> blocks) {
  for (std::size_t at = 0; at < blocks.size(); at += block_bytes) {
    std::byte* const block = &blocks[at];
    const auto variant = std::to_integer<std::size_t>(block[fields.front().offset]);
    for (const FieldVariants& field : fields) {
      std::memcpy(block + field.offset, &field.encoded[variant], n_scale_bytes);
    }
  }
}

/// Word i is a function of i and the key, so nothing waits for the word before.
void fill_with_random_bits(std::uint64_t key, std::span<std::byte> bytes) {
  constexpr std::uint64_t golden = 0x9e3779b97f4a7c15u;  // odd, its bits well mixed: 2^64 / phi
  constexpr std::size_t word_bytes = sizeof(std::uint64_t);
  std::uint64_t state = mix_bits(key);
  std::size_t at = 0;
  for (; at + word_bytes <= bytes.size(); at += word_bytes) {
    state += golden;
    store(bytes.data(), mix_bits(state), at);
  }
  const std::uint64_t last = mix_bits(state + golden);
  std::memcpy(bytes.data() + at, &last, bytes.size() - at);
}

}  // namespace

bool RandomBlocks::can_make(DType dtype) {
  return find_scales(dtype) != nullptr;
}

RandomBlocks::RandomBlocks(DType dtype) : scales_(find_scales(dtype)) {
  HEARTH_ASSERT(scales_ != nullptr);
  unit_deviation_ = measured_deviation();
}

void RandomBlocks::fill(std::uint64_t key, float deviation, std::span<std::byte> blocks) const {
  fill_at_scale(key, deviation / unit_deviation_, blocks);
}

void RandomBlocks::fill_at_scale(std::uint64_t key, float scale,
                                 std::span<std::byte> blocks) const {
  const auto block_bytes = static_cast<std::size_t>(quant::info(scales_->dtype).block_bytes);
  HEARTH_ASSERT(blocks.size() % block_bytes == 0);
  fill_with_random_bits(key, blocks);
  const auto fields = encode_variants(*scales_, scale);
  switch (scales_->encoding.n_bytes) {
    case 1:
      return write_scales<1>(fields, block_bytes, blocks);
    case 2:
      return write_scales<2>(fields, block_bytes, blocks);
    default:
      return write_scales<4>(fields, block_bytes, blocks);
  }
}

float RandomBlocks::measured_deviation() const {
  constexpr std::size_t n_weights = 1 << 16;  // enough for 2 % with 256 weights per scale
  std::vector<std::byte> blocks(
      static_cast<std::size_t>(quant::row_bytes(scales_->dtype, n_weights)));
  fill_at_scale(0, 1, blocks);
  std::vector<float> weights(n_weights);
  quant::decode(scales_->dtype, blocks, weights);
  double squares = 0;
  for (const double weight : weights) {
    squares += weight * weight;
  }
  return static_cast<float>(std::sqrt(squares / n_weights));
}

}  // namespace hearth::model
