#include "model/huggingface/mlx_groups.h"

#include <algorithm>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/fail.h"
#include "formats/gguf/place.h"
#include "quant/affine.h"
#include "quant/registry.h"
#include "quant/types/mxfp4.h"
#include "quant/types/nvfp4.h"

namespace hearth::model {
namespace {

using formats::ElementType;
using formats::SafetensorsTensor;

constexpr int word_bits = 32;

Failure wrong(const SafetensorsTensor& tensor, const std::string& expected) {
  std::string shape;
  for (const std::int64_t dim : tensor.shape) {
    shape += format("{}{}", shape.empty() ? "" : ", ", dim);
  }
  return fail(ErrorCode::invalid_file, "tensor {}: expected {}, found {} [{}]",
              formats::in_quotes(tensor.name), expected, formats::info(tensor.type).name, shape);
}

Failure missing(const SafetensorsTensor& codes, std::string_view what) {
  return fail(ErrorCode::invalid_file, "tensor {}: expected {} beside it, found none",
              formats::in_quotes(codes.name), what);
}

bool is_scale_type(ElementType type) {
  return type == ElementType::f32 || type == ElementType::f16 || type == ElementType::bf16;
}

/// The shape of the weights, from that of the scales; the codes must be as many.
Result<std::vector<std::int64_t>> shape_of_weights(const MlxPacking& packing,
                                                   const SafetensorsTensor& codes,
                                                   const SafetensorsTensor& scales) {
  std::vector<std::int64_t> shape = scales.shape;
  if (codes.shape.size() < 2 || codes.data.empty()) {
    return wrong(codes, "a matrix of codes");
  }
  const auto columns = shape.empty() ? std::nullopt : checked_mul(shape.back(), packing.group);
  const auto bits = columns ? checked_mul(*columns, packing.bits) : std::nullopt;
  std::vector<std::int64_t> expected = codes.shape;
  if (bits) {
    shape.back() = *columns;
    expected = shape;
    expected.back() = *bits / word_bits;
  }
  if (!bits || *bits % word_bits != 0 || codes.shape != expected) {
    std::string of_scales;
    for (const std::int64_t dim : scales.shape) {
      of_scales += format("{}{}", of_scales.empty() ? "" : ", ", dim);
    }
    return wrong(codes, format("codes of {} bits in groups of {} for scales [{}]", packing.bits,
                               packing.group, of_scales));
  }
  return shape;
}

Result<DType> block_type(const MlxPacking& packing, const SafetensorsTensor& codes,
                         const SafetensorsTensor& scales, const SafetensorsTensor* biases) {
  if (packing.mode == MlxMode::affine) {
    if (!is_scale_type(scales.type)) {
      return wrong(scales, "scales in F32, F16 or BF16");
    }
    if (biases == nullptr) {
      return missing(codes, "biases");
    }
    if (biases->type != scales.type || biases->shape != scales.shape) {
      return wrong(*biases, "biases of the type and shape of the scales");
    }
    return *quant::affine_type({packing.bits, packing.group, *formats::info(scales.type).dtype});
  }
  if (scales.type != ElementType::u8) {
    return wrong(scales, "scales in U8");
  }
  if (biases != nullptr) {
    return wrong(*biases, "no biases with a float mode");
  }
  return packing.mode == MlxMode::mxfp4 ? quant::MXFP4::info.dtype : quant::NVFP4::info.dtype;
}

/// One row of codes or scales.
Bytes row_of(const SafetensorsTensor& tensor, std::int64_t row, std::int64_t n_rows) {
  const std::size_t n_bytes = tensor.data.size() / static_cast<std::size_t>(n_rows);
  return tensor.data.subspan(static_cast<std::size_t>(row) * n_bytes, n_bytes);
}

/// 2 n four-bit codes in order to bytes with code i low and code n + i high.
void split_nibbles(Bytes codes, std::uint8_t* out) {
  const auto nibble = [codes](std::size_t i) {
    return std::to_integer<int>(codes[i / 2]) >> (4 * (i % 2)) & 15;
  };
  for (std::size_t i = 0; i < codes.size(); ++i) {
    out[i] = static_cast<std::uint8_t>(nibble(i) | nibble(codes.size() + i) << 4);
  }
}

quant::MXFP4::Block mxfp4_block(Bytes codes, Bytes scales, std::size_t first) {
  quant::MXFP4::Block block{.exponent = std::to_integer<std::uint8_t>(scales[first / 32]), .q = {}};
  split_nibbles(codes.subspan(first / 2, 16), block.q);
  return block;
}

quant::NVFP4::Block nvfp4_block(Bytes codes, Bytes scales, std::size_t first) {
  quant::NVFP4::Block block{};
  for (std::size_t group = 0; group < 4; ++group) {
    block.scales[group] = std::to_integer<std::uint8_t>(scales[first / 16 + group]);
    split_nibbles(codes.subspan(first / 2 + 8 * group, 8), &block.q[8 * group]);
  }
  return block;
}

template <class Block>
void write_blocks(Block (*make)(Bytes codes, Bytes scales, std::size_t first), Bytes codes,
                  Bytes scales, std::size_t first, std::span<std::byte> out) {
  const std::size_t n_weights = 2 * sizeof(Block::q);
  for (std::size_t at = 0; at < out.size(); at += sizeof(Block), first += n_weights) {
    store(out.data(), make(codes, scales, first), at);
  }
}

/// The bytes from which on a scale of the float modes is NaN, negative, or reserved.
int end_of_scales(MlxMode mode) {
  return mode == MlxMode::mxfp4 ? 0xff : 0x7f;
}

}  // namespace

Result<MlxGroups> match_mlx_groups(const MlxPacking& packing, const SafetensorsTensor& codes,
                                   const SafetensorsTensor* scales,
                                   const SafetensorsTensor* biases) {
  if (scales == nullptr) {
    return missing(codes, "scales");
  }
  MlxGroups groups{.packing = packing, .codes = &codes, .scales = scales, .biases = biases};
  HEARTH_ASSIGN(groups.shape, shape_of_weights(packing, codes, *scales));
  HEARTH_ASSIGN(groups.dtype, block_type(packing, codes, *scales, biases));
  return groups;
}

Result<void> read_mlx_blocks(const MlxGroups& groups, std::int64_t first, std::int64_t n,
                             std::byte* out) {
  const std::int64_t columns = groups.shape.back();
  const std::int64_t n_rows = Shape(groups.shape).elements() / columns;
  const std::int64_t row = first / columns;
  const auto column = static_cast<std::size_t>(first % columns);
  const Bytes codes = row_of(*groups.codes, row, n_rows);
  const Bytes scales = row_of(*groups.scales, row, n_rows);
  const std::span<std::byte> blocks(out,
                                    static_cast<std::size_t>(quant::row_bytes(groups.dtype, n)));
  if (groups.packing.mode == MlxMode::affine) {
    const quant::AffineFormat format{groups.packing.bits, groups.packing.group,
                                     *formats::info(groups.scales->type).dtype};
    quant::pack_affine(format, {codes, scales, row_of(*groups.biases, row, n_rows)}, column,
                       blocks);
    return {};
  }
  const int end = end_of_scales(groups.packing.mode);
  const auto bad = std::ranges::find_if(
      scales, [end](std::byte scale) { return std::to_integer<int>(scale) >= end; });
  if (bad != scales.end()) {
    return fail(ErrorCode::invalid_file, "tensor {}: expected scales below {}, found {}",
                formats::in_quotes(groups.scales->name), end, std::to_integer<int>(*bad));
  }
  if (groups.packing.mode == MlxMode::mxfp4) {
    write_blocks(mxfp4_block, codes, scales, column, blocks);
  } else {
    write_blocks(nvfp4_block, codes, scales, column, blocks);
  }
  return {};
}

}  // namespace hearth::model
