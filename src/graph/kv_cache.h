#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "graph/kv_panel.h"
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
  DType dtype = DType::f16;  // f32, f16, bf16, Q8_0 or Q4_0
  std::int64_t n_blocks = 0;
  std::vector<KvLayer> layers;

  /// Bytes of keys and values that one token occupies over all layers, padding included.
  [[nodiscard]] std::int64_t bytes_per_token() const;
  [[nodiscard]] std::int64_t bytes() const {
    return bytes_per_token() * kv_block_tokens * n_blocks;
  }
  /// Errors: invalid_argument for a type that no cache has, or heads that are not whole blocks of
  /// it.
  [[nodiscard]] Result<void> check() const;
};

/// The cache in host memory. Per layer and per half (keys, values): [block][kv head] of panels
/// (graph/kv_panel.h), keys as [head_dim][16 positions], values as [16 positions][value_stride]. So
/// the lanes of a vector are keys where scores are computed, and dimensions where values are added,
/// and neither needs sums across lanes.
class HostKvCache {
 public:
  /// `desc` has passed check().
  explicit HostKvCache(KvCacheDesc desc);

  [[nodiscard]] const KvCacheDesc& desc() const { return desc_; }

  /// The panel of a block and head, in `desc().dtype`.
  [[nodiscard]] const std::byte* keys(std::size_t layer, std::int64_t block,
                                      std::int64_t head) const {
    return base(layer) + keys_[layer].offset(desc_.layers[layer], block, head);
  }
  [[nodiscard]] const std::byte* values(std::size_t layer, std::int64_t block,
                                        std::int64_t head) const {
    return base(layer) + values_[layer].offset(desc_.layers[layer], block, head);
  }

  /// Stores the key and value [head_dim] of `position`, rounded to `desc().dtype`.
  void write(std::size_t layer, const std::int32_t* block_table, std::int64_t position,
             std::int64_t head, const float* key, const float* value);
  /// The keys [head_dim, 16] and values [16, value_stride] of a block and head, widened to f32.
  void read(std::size_t layer, std::int64_t block, std::int64_t head, float* keys_out,
            float* values_out) const;

 private:
  [[nodiscard]] std::byte* base(std::size_t layer) {
    return storage_.bytes().data() + layer_offset_[layer];
  }
  [[nodiscard]] const std::byte* base(std::size_t layer) const {
    return storage_.bytes().data() + layer_offset_[layer];
  }
  /// Keys or values of one layer.
  struct Half {
    std::int64_t start = 0;        // bytes from those of the layer
    std::int64_t panel_bytes = 0;  // of 16 positions of one head

    [[nodiscard]] std::int64_t offset(const KvLayer& layer, std::int64_t block,
                                      std::int64_t head) const {
      return start + (block * layer.n_kv_heads + head) * panel_bytes;
    }
  };

  KvCacheDesc desc_;
  std::vector<std::int64_t> layer_offset_;  // bytes, per layer
  std::vector<Half> keys_;                  // per layer
  std::vector<Half> values_;
  Buffer storage_;
};

}  // namespace hearth::graph
