#pragma once
/// How keys and values of each type lie in a panel of the cache, the 16 positions of one head in
/// one block: keys as [head_dim][16], values as [16][value_stride]. Inline, because backends widen
/// panels with their own instructions.

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/half.h"
#include "graph/step.h"
#include "quant/decode.h"
#include "quant/types/q4_0.h"
#include "quant/types/q8_0.h"
#include "tensor/dtype.h"

namespace hearth::graph {

/// Elements from one stored value to the next: whole pairs of vectors, so that kernels need no
/// remainders.
constexpr std::int64_t value_stride(std::int64_t head_dim) {
  return round_up(head_dim, 32);
}

inline void convert(float from, float& to) {
  to = from;
}
inline void convert(float from, Half& to) {
  to = to_half(from);
}
inline void convert(float from, BFloat16& to) {
  to = to_bfloat16(from);
}
inline float widen(float x) {
  return x;
}
inline float widen(Half x) {
  return to_float(x);
}
inline float widen(BFloat16 x) {
  return to_float(x);
}

/// Elements that are floats of some width.
template <DType type, class Element>
struct FloatPanel {
  static constexpr DType dtype = type;

  static void store_key(const float* key, std::int64_t head_dim, std::int64_t slot,
                        std::byte* panel) {
    for (std::int64_t d = 0; d < head_dim; ++d) {
      store_element(key[d], d * kv_block_tokens + slot, panel);
    }
  }
  static void store_value(const float* value, std::int64_t head_dim, std::int64_t slot,
                          std::byte* panel) {
    for (std::int64_t d = 0; d < head_dim; ++d) {
      store_element(value[d], slot * value_stride(head_dim) + d, panel);
    }
  }
  /// out [head_dim, 16]
  static void widen_keys(const std::byte* panel, std::int64_t head_dim, float* out) {
    widen_elements(panel, kv_block_tokens * head_dim, out);
  }
  /// out [16, value_stride]
  static void widen_values(const std::byte* panel, std::int64_t head_dim, float* out) {
    widen_elements(panel, kv_block_tokens * value_stride(head_dim), out);
  }

 private:
  static void store_element(float x, std::int64_t i, std::byte* panel) {
    Element element;
    convert(x, element);
    store(panel, element, static_cast<std::size_t>(i) * sizeof(Element));
  }
  static void widen_elements(const std::byte* panel, std::int64_t n, float* out) {
    for (std::int64_t i = 0; i < n; ++i) {
      out[i] = widen(load<Element>(panel, static_cast<std::size_t>(i) * sizeof(Element)));
    }
  }
};

/// Scale and codes of 32 elements, Q8_0 and Q4_0 alike: x is about scale * code. A group with a NaN
/// or an infinity has scale NaN, so that the fault is not turned into a plausible number.
struct QuantizedGroup {
  Half scale;
  std::array<std::int8_t, 32> codes;
};
void quantize_group(const float* x, const quant::Q8_0& type, QuantizedGroup& out);
void quantize_group(const float* x, const quant::Q4_0& type, QuantizedGroup& out);

inline void pack(const QuantizedGroup& group, quant::Q8_0::Block& block) {
  block.scale = group.scale;
  std::memcpy(block.q, group.codes.data(), sizeof block.q);
}
inline void pack(const QuantizedGroup& group, quant::Q4_0::Block& block) {
  block.scale = group.scale;
  for (std::size_t i = 0; i < 16; ++i) {
    const int low = group.codes[i] + 8;
    const int high = group.codes[i + 16] + 8;
    block.q[i] = static_cast<std::uint8_t>(low | high << 4);
  }
}

/// Blocks of 32 elements with a scale. Values are rows of such blocks. Keys have the bytes of 16
/// blocks interleaved: 16 scales, then byte i of every block's codes, for every i.
template <class Q>
struct QuantizedPanel {
  using Quant = Q;
  using Block = typename Q::Block;
  static constexpr DType dtype = Q::info.dtype;
  static constexpr std::int64_t group = Q::info.block_weights;
  static constexpr std::size_t slots = kv_block_tokens;
  static constexpr std::size_t code_bytes = sizeof(Block) - sizeof(Half);
  static constexpr std::int64_t group_bytes = kv_block_tokens * sizeof(Block);

  static void store_key(const float* key, std::int64_t head_dim, std::int64_t slot,
                        std::byte* panel) {
    const auto lane = static_cast<std::size_t>(slot);
    for (std::int64_t d = 0; d < head_dim; d += group, panel += group_bytes) {
      const auto bytes = std::bit_cast<std::array<std::byte, sizeof(Block)>>(quantize(key + d));
      std::memcpy(panel + lane * sizeof(Half), bytes.data(), sizeof(Half));
      for (std::size_t i = 0; i < code_bytes; ++i) {
        panel[slots * sizeof(Half) + i * slots + lane] = bytes[sizeof(Half) + i];
      }
    }
  }
  static void store_value(const float* value, std::int64_t head_dim, std::int64_t slot,
                          std::byte* panel) {
    panel += slot * head_dim / group * static_cast<std::int64_t>(sizeof(Block));
    for (std::int64_t d = 0; d < head_dim; d += group, panel += sizeof(Block)) {
      store(panel, quantize(value + d));
    }
  }

  static void widen_keys(const std::byte* panel, std::int64_t head_dim, float* out) {
    for (std::int64_t d = 0; d < head_dim; d += group, panel += group_bytes) {
      std::array<float, slots> scales;
      for (std::size_t lane = 0; lane < slots; ++lane) {
        scales[lane] = to_float(load<Half>(panel, lane * sizeof(Half)));
      }
      for (std::size_t i = 0; i < code_bytes; ++i) {
        const auto codes = load<std::array<std::uint8_t, slots>>(panel, slots * (sizeof(Half) + i));
        widen_codes(codes, scales, i, out + d * kv_block_tokens);
      }
    }
  }
  static void widen_values(const std::byte* panel, std::int64_t head_dim, float* out) {
    const auto n = static_cast<std::size_t>(kv_block_tokens * head_dim);
    quant::decode_blocks<Q>({as_array<Block>(panel), n / group}, {out, n});
  }

 private:
  static Block quantize(const float* x) {
    QuantizedGroup quantized;
    quantize_group(x, Q{}, quantized);
    Block block;
    pack(quantized, block);
    return block;
  }

  /// Byte i of the codes of 16 keys to rows of `out` [32, 16].
  static void widen_codes(const std::array<std::uint8_t, slots>& codes,
                          const std::array<float, slots>& scales, std::size_t i, float* out) {
    if constexpr (code_bytes == group) {
      for (std::size_t lane = 0; lane < slots; ++lane) {
        out[i * slots + lane] =
            scales[lane] * static_cast<float>(static_cast<std::int8_t>(codes[lane]));
      }
    } else {
      for (std::size_t lane = 0; lane < slots; ++lane) {
        out[i * slots + lane] = scales[lane] * static_cast<float>((codes[lane] & 15) - 8);
      }
      for (std::size_t lane = 0; lane < slots; ++lane) {
        out[(i + 16) * slots + lane] = scales[lane] * static_cast<float>((codes[lane] >> 4) - 8);
      }
    }
  }
};

template <class... Panels>
struct PanelList {
  /// f.operator()<Panel>() of the panel with `dtype`; false when there is none.
  template <class F>
  static bool visit(DType dtype, F&& f) {
    return ((Panels::dtype == dtype && (f.template operator()<Panels>(), true)) || ...);
  }
};
/// The types that a cache may have.
using KvPanels = PanelList<FloatPanel<DType::f32, float>, FloatPanel<DType::f16, Half>,
                           FloatPanel<DType::bf16, BFloat16>, QuantizedPanel<quant::Q8_0>,
                           QuantizedPanel<quant::Q4_0>>;

}  // namespace hearth::graph
