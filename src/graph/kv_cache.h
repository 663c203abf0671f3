#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "base/bytes.h"
#include "base/half.h"
#include "graph/step.h"
#include "tensor/buffer.h"
#include "tensor/dtype.h"

namespace hearth::graph {

/// Shape of the cache of one attention layer.
struct KvLayer {
  std::int64_t n_kv_heads = 0;
  std::int64_t head_dim = 0;

  bool operator==(const KvLayer&) const = default;
};

/// A paged key/value cache: `n_blocks` blocks of kv_block_tokens positions, each spanning every
/// layer.
struct KvCacheDesc {
  DType dtype = DType::f16;  // f32, f16 or bf16
  std::int64_t n_blocks = 0;
  std::vector<KvLayer> layers;

  /// Bytes of keys and values that one token occupies over all layers.
  [[nodiscard]] std::int64_t bytes_per_token() const;
  [[nodiscard]] std::int64_t bytes() const {
    return bytes_per_token() * kv_block_tokens * n_blocks;
  }
};

/// The cache in host memory. Layout per layer and per half (keys, values): [block][kv head][16
/// positions][head_dim], so the positions of one head in one block are contiguous.
class HostKvCache {
 public:
  explicit HostKvCache(KvCacheDesc desc);

  [[nodiscard]] const KvCacheDesc& desc() const { return desc_; }

  /// Address of 16 consecutive rows [16, head_dim] of `desc().dtype`.
  [[nodiscard]] const std::byte* keys(std::size_t layer, std::int64_t block,
                                      std::int64_t head) const {
    return base(layer) + head_offset(layer, block, head);
  }
  [[nodiscard]] const std::byte* values(std::size_t layer, std::int64_t block,
                                        std::int64_t head) const {
    return base(layer) + half_bytes_[layer] + head_offset(layer, block, head);
  }

  /// Stores the key and value [head_dim] of `position`, rounded to nearest even.
  void write(std::size_t layer, const std::int32_t* block_table, std::int64_t position,
             std::int64_t head, const float* key, const float* value);

 private:
  [[nodiscard]] std::byte* base(std::size_t layer) {
    return storage_.bytes().data() + layer_offset_[layer];
  }
  [[nodiscard]] const std::byte* base(std::size_t layer) const {
    return storage_.bytes().data() + layer_offset_[layer];
  }
  [[nodiscard]] std::int64_t head_offset(std::size_t layer, std::int64_t block,
                                         std::int64_t head) const {
    return (block * desc_.layers[layer].n_kv_heads + head) * head_bytes_[layer];
  }

  KvCacheDesc desc_;
  std::vector<std::int64_t> layer_offset_;  // bytes, per layer
  std::vector<std::int64_t> half_bytes_;    // bytes of all keys of a layer
  std::vector<std::int64_t> head_bytes_;    // bytes of 16 rows
  Buffer storage_;
};

/// Widens `n` stored elements of a cache row to f32.
inline void load_kv_row(DType dtype, const std::byte* row, std::int64_t n, float* out) {
  const auto count = static_cast<std::size_t>(n);
  switch (dtype) {
    case DType::f32:
      std::memcpy(out, row, count * sizeof(float));
      break;
    case DType::f16:
      for (std::size_t i = 0; i < count; ++i) {
        out[i] = to_float(load<Half>(row, i * sizeof(Half)));
      }
      break;
    default:
      for (std::size_t i = 0; i < count; ++i) {
        out[i] = to_float(load<BFloat16>(row, i * sizeof(BFloat16)));
      }
  }
}

}  // namespace hearth::graph
