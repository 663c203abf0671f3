#include "tests/quant/random_blocks.h"

#include <algorithm>
#include <string_view>

#include "base/bytes.h"
#include "quant/registry.h"

namespace hearth::quant {
namespace {

/// Where a type keeps the high byte of its half scales.
struct ScaleFields {
  std::string_view type;
  std::vector<std::size_t> offsets;
};

const ScaleFields* find_scales(std::string_view type) {
  static const std::vector<ScaleFields> known{
      {"Q4_0", {1}},      {"Q4_1", {1, 3}}, {"Q5_0", {1}},    {"Q5_1", {1, 3}}, {"Q8_0", {1}},
      {"Q2_K", {81, 83}}, {"Q3_K", {109}},  {"Q4_K", {1, 3}}, {"Q5_K", {1, 3}}, {"Q6_K", {209}},
      {"IQ2_XXS", {1}},   {"IQ2_XS", {1}},  {"IQ2_S", {1}},   {"IQ3_XXS", {1}}, {"IQ3_S", {1}},
      {"IQ1_S", {1}},     {"IQ4_NL", {1}},  {"IQ4_XS", {1}},  {"TQ1_0", {53}},  {"TQ2_0", {65}},
      {"Q1_0", {1}},      {"Q2_0", {1}}};
  const auto found = std::ranges::find(known, type, &ScaleFields::type);
  return found == known.end() ? nullptr : &*found;
}

/// Scale and offset are the last two numbers of a block.
void tame_affine_numbers(const QuantInfo& type, std::byte* block, bool subnormal) {
  const bool is_half = type.name.ends_with("_F16");
  const std::size_t n_bytes = type.name.ends_with("_F32") ? 4 : 2;
  for (const std::size_t end : {n_bytes, 2 * n_bytes}) {
    std::byte* high = block + static_cast<std::size_t>(type.block_bytes) - end + n_bytes - 2;
    // The exponents of a half, and of the upper 16 bits of a float: 2^-3 to 2^1, and 0.
    const std::uint16_t kept = is_half ? 0x83ff : 0x81ff;
    const std::uint16_t exponent = is_half ? 0x3000 : 0x3e00;
    const auto bits = static_cast<std::uint16_t>(load<std::uint16_t>(high) & kept);
    store(high, static_cast<std::uint16_t>(subnormal && is_half ? bits : bits | exponent));
  }
}

void tame_scales(const QuantInfo& type, std::byte* block, bool subnormal) {
  const std::byte exponent{subnormal ? std::uint8_t{0} : std::uint8_t{0x30}};
  if (!type.is_in_files) {
    tame_affine_numbers(type, block, subnormal);
  } else if (const ScaleFields* scales = find_scales(type.name)) {
    for (const std::size_t offset : scales->offsets) {
      block[offset] = (block[offset] & std::byte{0x83}) | exponent;
    }
  } else if (type.name == "IQ1_M") {  // the top nibble of the last word: sign, top of the exponent
    block[55] = (block[55] & std::byte{0x8f}) | exponent;
  } else if (type.name == "MXFP4") {
    block[0] = static_cast<std::byte>(112 + std::to_integer<int>(block[0] & std::byte{31}));
  } else if (type.name == "NVFP4") {
    for (std::size_t i = 0; i < 4; ++i) {
      block[i] &= std::byte{0x7f};
    }
  }
}

}  // namespace

std::vector<DType> decodable_types() {
  std::vector<DType> types;
  for (const auto& type : all()) {
    if (is_float_decodable(type.dtype)) {
      types.push_back(type.dtype);
    }
  }
  return types;
}

std::vector<std::byte> random_blocks(const QuantInfo& type, std::uint32_t seed,
                                     std::size_t n_blocks) {
  const auto block_bytes = static_cast<std::size_t>(type.block_bytes);
  std::vector<std::byte> blocks(n_blocks * block_bytes);
  std::uint32_t state = seed;
  for (std::byte& byte : blocks) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<std::byte>(state >> 24);
  }
  for (std::size_t n = 0; n < n_blocks; ++n) {
    tame_scales(type, &blocks[n * block_bytes], n % 8 == 7);
  }
  return blocks;
}

}  // namespace hearth::quant
