#pragma once
/// The types of weights that kernels have, and their rows as kernels take them.

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "backend/gpu/kernels/registry.h"
#include "backend/gpu/kernels/strips.h"
#include "backend/gpu/kernels/weight_tiles.h"
#include "quant/activation.h"
#include "quant/registry.h"
#include "tests/backend/gpu/kernels/kernel_runner.h"
#include "tests/graph/op_runner.h"

namespace hearth::backend::gpu {

struct WeightType {
  std::string_view name;
  KernelId product;
  KernelId embed;

  [[nodiscard]] DType dtype() const { return quant::find(name)->dtype; }
};

inline constexpr std::array weight_types{
    WeightType{"F32", KernelId::product_f32, KernelId::embed_f32},
    WeightType{"F16", KernelId::product_f16, KernelId::embed_f16},
    WeightType{"BF16", KernelId::product_bf16, KernelId::embed_bf16},
    WeightType{"Q4_0", KernelId::product_q4_0, KernelId::embed_q4_0},
    WeightType{"Q4_1", KernelId::product_q4_1, KernelId::embed_q4_1},
    WeightType{"Q5_0", KernelId::product_q5_0, KernelId::embed_q5_0},
    WeightType{"Q5_1", KernelId::product_q5_1, KernelId::embed_q5_1},
    WeightType{"Q8_0", KernelId::product_q8_0, KernelId::embed_q8_0},
    WeightType{"IQ4_NL", KernelId::product_iq4_nl, KernelId::embed_iq4_nl},
    WeightType{"MXFP4", KernelId::product_mxfp4, KernelId::embed_mxfp4},
    WeightType{"NVFP4", KernelId::product_nvfp4, KernelId::embed_nvfp4},
    WeightType{"Q2_K", KernelId::product_q2_k, KernelId::embed_q2_k},
    WeightType{"Q3_K", KernelId::product_q3_k, KernelId::embed_q3_k},
    WeightType{"Q4_K", KernelId::product_q4_k, KernelId::embed_q4_k},
    WeightType{"Q5_K", KernelId::product_q5_k, KernelId::embed_q5_k},
    WeightType{"Q6_K", KernelId::product_q6_k, KernelId::embed_q6_k},
    WeightType{"IQ4_XS", KernelId::product_iq4_xs, KernelId::embed_iq4_xs},
};

/// The types that have tiles, by name, and StripParams::type.
struct TiledType {
  std::string_view name;
  u32 number;
};
#define HEARTH_TILED_TYPE(name, bytes, unused) TiledType{#name, STRIP_##name},
inline constexpr std::array tiled_type_names{TILED_TYPES(HEARTH_TILED_TYPE, )};
#undef HEARTH_TILED_TYPE

inline bool has_tiles(const WeightType& type) {
  return std::ranges::find(tiled_type_names, type.name, &TiledType::name) != tiled_type_names.end();
}
inline std::vector<WeightType> tiled_types() {
  std::vector<WeightType> types;
  std::ranges::copy_if(weight_types, std::back_inserter(types), has_tiles);
  return types;
}

/// A matrix, or those of experts, in tiles; of a type without tiles as it is.
inline Contents tiled(const TensorView& tensor) {
  const auto block_bytes = static_cast<u32>(quant::info(tensor.dtype).block_bytes);
  if (tensor.dtype == DType::f32) {
    return {tensor.data.begin(), tensor.data.end()};
  }
  const auto n_rows = static_cast<u32>(tensor.shape[tensor.shape.rank() - 2]);
  const auto n_tiles = static_cast<u32>(tensor.shape.back() / 256);
  const auto row_bytes = static_cast<std::size_t>(n_tiles) * TILE_BLOCKS(block_bytes) * block_bytes;
  const std::size_t n_matrices = tensor.data.size() / (n_rows * row_bytes);
  const std::size_t n_strips = n_matrices * ((n_rows + TILE_ROWS - 1) / TILE_ROWS);
  return run_everywhere(call(KernelId::tile_weights,
                             {Contents(tensor.data.begin(), tensor.data.end()),
                              Contents(n_strips * TILE_ROWS * row_bytes)},
                             TileWeightsParams{block_bytes, n_tiles, n_rows},
                             {n_tiles, static_cast<u32>(n_strips)}, {TILE_WEIGHTS_THREADS}))
      .back();
}

/// Those to test: with the thread sanitizer, which takes its time, one of each kind of kernel.
inline std::vector<WeightType> tested_types() {
  std::vector<WeightType> types;
  for (const WeightType& type : weight_types) {
    const bool stands_for_others = type.name == "F16" || type.name == "Q5_1" || type.name == "Q4_K";
    if (stands_for_others || !emulator::has_thread_sanitizer) {
      types.push_back(type);
    }
  }
  return types;
}

/// StripParams::type of a type by name.
inline u32 strip_number(std::string_view type) {
  const auto* const found = std::ranges::find(tiled_type_names, type, &TiledType::name);
  return found == tiled_type_names.end() ? STRIP_F32 : found->number;
}

/// The kernel of a family that is made for a type.
inline KernelId kernel_for_type(std::string name, std::string_view type) {
  std::ranges::transform(type, std::back_inserter(name), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return find_kernel(name).value();
}

inline std::string name_of_type(const testing::TestParamInfo<WeightType>& info) {
  return std::string(info.param.name);
}

/// Values as int8 codes.
struct Codes {
  std::vector<std::int8_t> codes;
  std::vector<float> scales;
  std::vector<std::int16_t> sums;

  Codes(const std::vector<float>& x, int block)
      : codes(x.size()),
        scales(x.size() / static_cast<std::size_t>(block)),
        sums(x.size() / quant::activation_sum_group) {
    quant::quantize_activations(x, block, {codes, scales, sums});
  }
};

}  // namespace hearth::backend::gpu
