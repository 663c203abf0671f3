#include "quant/affine.h"

#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>
#include <utility>

#include "base/assert.h"
#include "base/half.h"
#include "quant/all_types.h"
#include "quant/registry.h"

namespace hearth::quant {
namespace {

using Packer = void (*)(const AffineFormat& format, const AffineRow& row, std::size_t first,
                        std::span<std::byte> blocks);

/// The 32 codes from number `first`, a multiple of 8, on. Eight codes are whole bytes.
template <std::size_t bits>
std::array<std::uint8_t, affine_run> read_run(Bytes stream, std::size_t first) {
  std::array<std::uint8_t, affine_run> codes;
  for (std::size_t i = 0; i < affine_run; i += 8) {
    std::array<std::byte, sizeof(std::uint64_t)> eight{};
    std::ranges::copy(stream.subspan((first + i) / 8 * bits, bits), eight.begin());
    const auto word = load<std::uint64_t>(eight.data());
    for (std::size_t k = 0; k < 8; ++k) {
      codes[i + k] = static_cast<std::uint8_t>(word >> (k * bits) & ((1u << bits) - 1));
    }
  }
  return codes;
}

/// Element `i` of `numbers`, exact in the type that is asked for.
template <class Scale>
Scale read_number(Bytes numbers, DType type, std::size_t i) {
  if constexpr (std::is_same_v<Scale, float>) {
    switch (type) {
      case DType::f16:
        return to_float(load<Half>(numbers.data(), i * sizeof(Half)));
      case DType::bf16:
        return to_float(load<BFloat16>(numbers.data(), i * sizeof(BFloat16)));
      default:
        return load<float>(numbers.data(), i * sizeof(float));
    }
  } else {
    return load<Scale>(numbers.data(), i * sizeof(Scale));
  }
}

template <class Q>
void pack_blocks(const AffineFormat& format, const AffineRow& row, std::size_t first,
                 std::span<std::byte> blocks) {
  using Block = typename Q::Block;
  for (std::size_t at = 0; at < blocks.size(); at += sizeof(Block), first += Q::n_weights) {
    Block block{};
    for (std::size_t run = 0; run < Q::n_runs; ++run) {
      auto codes = read_run<Q::bits>(row.codes, first + run * affine_run);
      for (std::uint8_t& code : codes) {
        code = static_cast<std::uint8_t>(code - Q::integers.code_zero);
      }
      Q::Planes::put(codes.data(), block.planes[run]);
    }
    const std::size_t group = first / static_cast<std::size_t>(format.group);
    block.scale = read_number<typename Q::Scale>(row.scales, format.scale_type, group);
    block.offset = read_number<typename Q::Scale>(row.offsets, format.scale_type, group);
    store(blocks.data(), block, at);
  }
}

template <class Q>
inline constexpr bool is_affine = false;
template <std::size_t bits, class Scale>
inline constexpr bool is_affine<Affine<bits, Scale>> = true;

/// What packs blocks of a type; nullptr where it is not affine.
Packer packer_of(DType dtype) {
  Packer packer = nullptr;
  AllQuantTypes::for_each([&]<class Q>() {
    if constexpr (is_affine<Q>) {
      packer = Q::info.dtype == dtype ? pack_blocks<Q> : packer;
    }
  });
  return packer;
}

/// One run of 32 codes as a block of a GGUF type.
void put_codes(const std::int8_t* codes, Q4_1::Block& block) {
  for (std::size_t i = 0; i < 16; ++i) {
    block.q[i] = static_cast<std::uint8_t>(codes[i] | codes[16 + i] << 4);
  }
}

void put_codes(const std::int8_t* codes, Q5_1::Block& block) {
  std::uint32_t high = 0;
  for (std::size_t i = 0; i < affine_run; ++i) {
    high |= static_cast<std::uint32_t>(codes[i] >> 4) << i;
  }
  store(block.high, high);
  for (std::size_t i = 0; i < 16; ++i) {
    block.q[i] = static_cast<std::uint8_t>((codes[i] & 15) | (codes[16 + i] & 15) << 4);
  }
}

/// False when x is no half.
bool put_half(float x, Half& half) {
  half = to_half(x);
  return std::bit_cast<std::uint32_t>(to_float(half)) == std::bit_cast<std::uint32_t>(x);
}

template <class Target>
bool repack(DType dtype, Bytes blocks, std::span<std::byte> out) {
  const auto block_bytes = static_cast<std::size_t>(info(dtype).block_bytes);
  const auto n_runs = static_cast<std::size_t>(info(dtype).block_weights) / affine_run;
  std::size_t written = 0;
  for (std::size_t at = 0; at < blocks.size(); at += block_bytes) {
    IntegerBlock integers;
    to_integers(dtype, blocks.subspan(at, block_bytes), integers);
    for (std::size_t run = 0; run < n_runs; ++run, written += sizeof(typename Target::Block)) {
      typename Target::Block block;
      if (!put_half(integers.scales[run], block.scale) ||
          !put_half(integers.offsets[run], block.offset)) {
        return false;
      }
      put_codes(&integers.codes[run * affine_run], block);
      store(out.data(), block, written);
    }
  }
  return true;
}

}  // namespace

std::optional<DType> affine_type(const AffineFormat& format) {
  if (format.group != 32 && format.group != 64 && format.group != 128) {
    return std::nullopt;
  }
  const DType stored = format.group == 32 ? DType::f32 : format.scale_type;
  std::optional<DType> found;
  AllQuantTypes::for_each([&]<class Q>() {
    if constexpr (is_affine<Q>) {
      const bool is_known = format.scale_type == DType::f32 || format.scale_type == DType::f16 ||
                            format.scale_type == DType::bf16;
      if (std::cmp_equal(Q::bits, format.bits) && Q::scale_type == stored && is_known) {
        found = Q::info.dtype;
      }
    }
  });
  return found;
}

std::optional<DType> affine_file_type(DType dtype) {
  std::optional<DType> found;
  AllQuantTypes::for_each([&]<class Q>() {
    if constexpr (is_affine<Q>) {
      if (Q::info.dtype == dtype && Q::bits <= 5) {
        found = Q::bits == 5 ? Q5_1::info.dtype : Q4_1::info.dtype;
      }
    }
  });
  return found;
}

std::int64_t affine_file_bytes(DType dtype, std::int64_t n_bytes) {
  const QuantInfo& type = info(dtype);
  return row_bytes(*affine_file_type(dtype), n_bytes / type.block_bytes * type.block_weights);
}

bool repack_for_file(DType dtype, Bytes blocks, std::span<std::byte> out) {
  const auto target = affine_file_type(dtype);
  HEARTH_ASSERT(target.has_value());
  return *target == Q5_1::info.dtype ? repack<Q5_1>(dtype, blocks, out)
                                     : repack<Q4_1>(dtype, blocks, out);
}

void pack_affine(const AffineFormat& format, const AffineRow& row, std::size_t first,
                 std::span<std::byte> blocks) {
  const auto dtype = affine_type(format);
  HEARTH_ASSERT(dtype.has_value());
  packer_of (*dtype)(format, row, first, blocks);
}

}  // namespace hearth::quant
