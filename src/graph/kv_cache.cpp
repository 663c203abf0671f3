#include "graph/kv_cache.h"

#include <utility>

#include "base/assert.h"
#include "base/fail.h"
#include "quant/registry.h"

namespace hearth::graph {
std::int64_t KvCacheDesc::bytes_per_token() const {
  std::int64_t elements = 0;
  for (const auto& layer : layers) {
    elements += layer.n_kv_heads * (layer.head_dim + value_stride(layer.head_dim));
  }
  return quant::row_bytes(dtype, elements);
}

Result<void> KvCacheDesc::check() const {
  if (!KvPanels::visit(dtype, []<class Panel>() {})) {
    return fail(ErrorCode::invalid_argument,
                "KV cache of type {}, expected F32, F16, BF16, Q8_0 or Q4_0", quant::name(dtype));
  }
  const auto& type = quant::info(dtype);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].head_dim % type.block_weights != 0) {
      return fail(ErrorCode::invalid_argument,
                  "KV cache of type {}: heads of attention layer {} have length {}, expected a "
                  "multiple of {}",
                  type.name, i, layers[i].head_dim, type.block_weights);
    }
  }
  return {};
}

HostKvCache::HostKvCache(KvCacheDesc desc) : desc_(std::move(desc)) {
  HEARTH_ASSERT(desc_.check().has_value());
  std::int64_t offset = 0;
  for (const auto& layer : desc_.layers) {
    layer_offset_.push_back(offset);
    const auto panel_bytes = [&](std::int64_t stride) {
      return quant::row_bytes(desc_.dtype, kv_block_tokens * stride);
    };
    keys_.push_back({.start = 0, .panel_bytes = panel_bytes(layer.head_dim)});
    values_.push_back({.start = keys_.back().offset(layer, desc_.n_blocks, 0),
                       .panel_bytes = panel_bytes(value_stride(layer.head_dim))});
    offset += values_.back().offset(layer, desc_.n_blocks, 0);
  }
  storage_ = Buffer(offset);
}

void HostKvCache::write(std::size_t layer, const std::int32_t* block_table, std::int64_t position,
                        std::int64_t head, const float* key, const float* value) {
  const KvLayer& shape = desc_.layers[layer];
  const std::int64_t block = block_table[position / kv_block_tokens];
  const std::int64_t slot = position % kv_block_tokens;
  HEARTH_ASSERT(block >= 0 && block < desc_.n_blocks);
  std::byte* key_panel = base(layer) + keys_[layer].offset(shape, block, head);
  std::byte* value_panel = base(layer) + values_[layer].offset(shape, block, head);
  KvPanels::visit(desc_.dtype, [&]<class Panel>() {
    Panel::store_key(key, shape.head_dim, slot, key_panel);
    Panel::store_value(value, shape.head_dim, slot, value_panel);
  });
}

void HostKvCache::read(std::size_t layer, std::int64_t block, std::int64_t head, float* keys_out,
                       float* values_out) const {
  const std::int64_t head_dim = desc_.layers[layer].head_dim;
  KvPanels::visit(desc_.dtype, [&]<class Panel>() {
    Panel::widen_keys(keys(layer, block, head), head_dim, keys_out);
    Panel::widen_values(values(layer, block, head), head_dim, values_out);
  });
}

}  // namespace hearth::graph
