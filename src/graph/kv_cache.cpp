#include "graph/kv_cache.h"

#include <utility>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/half.h"
#include "quant/registry.h"

namespace hearth::graph {
namespace {

/// The elements of one position in a panel, `stride` elements apart.
struct Elements {
  std::byte* panel;
  std::int64_t first;
  std::int64_t stride;
};

template <class Stored>
void store_elements(const float* in, std::int64_t n, const Elements& to, Stored (*convert)(float)) {
  for (std::int64_t i = 0; i < n; ++i) {
    store(to.panel, convert(in[i]),
          static_cast<std::size_t>(to.first + i * to.stride) * sizeof(Stored));
  }
}
void store_elements(DType dtype, const float* in, std::int64_t n, const Elements& to) {
  switch (dtype) {
    case DType::f32:
      return store_elements<float>(in, n, to, [](float x) { return x; });
    case DType::f16:
      return store_elements<Half>(in, n, to, to_half);
    default:
      return store_elements<BFloat16>(in, n, to, to_bfloat16);
  }
}

float load_element(DType dtype, const std::byte* panel, std::int64_t i) {
  const auto at = static_cast<std::size_t>(i);
  switch (dtype) {
    case DType::f32:
      return load<float>(panel, at * sizeof(float));
    case DType::f16:
      return to_float(load<Half>(panel, at * sizeof(Half)));
    default:
      return to_float(load<BFloat16>(panel, at * sizeof(BFloat16)));
  }
}

}  // namespace

std::int64_t KvCacheDesc::bytes_per_token() const {
  std::int64_t elements = 0;
  for (const auto& layer : layers) {
    elements += layer.n_kv_heads * (layer.head_dim + value_stride(layer.head_dim));
  }
  return quant::row_bytes(dtype, elements);
}

HostKvCache::HostKvCache(KvCacheDesc desc) : desc_(std::move(desc)) {
  HEARTH_ASSERT(desc_.dtype == DType::f32 || desc_.dtype == DType::f16 ||
                desc_.dtype == DType::bf16);
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

std::int64_t HostKvCache::checked_block(const std::int32_t* block_table,
                                        std::int64_t position) const {
  const std::int64_t block = block_table[position / kv_block_tokens];
  HEARTH_ASSERT(block >= 0 && block < desc_.n_blocks);
  return block;
}

void HostKvCache::write(std::size_t layer, const std::int32_t* block_table, std::int64_t position,
                        std::int64_t head, const float* key, const float* value) {
  const KvLayer& shape = desc_.layers[layer];
  const std::int64_t block = checked_block(block_table, position);
  const std::int64_t slot = position % kv_block_tokens;
  store_elements(desc_.dtype, key, shape.head_dim,
                 {base(layer) + keys_[layer].offset(shape, block, head), slot, kv_block_tokens});
  store_elements(desc_.dtype, value, shape.head_dim,
                 {base(layer) + values_[layer].offset(shape, block, head),
                  slot * value_stride(shape.head_dim), 1});
}

void HostKvCache::read(std::size_t layer, const std::int32_t* block_table, std::int64_t position,
                       std::int64_t head, float* key, float* value) const {
  const std::int64_t head_dim = desc_.layers[layer].head_dim;
  const std::int64_t block = checked_block(block_table, position);
  const std::int64_t slot = position % kv_block_tokens;
  for (std::int64_t d = 0; d < head_dim; ++d) {
    key[d] = load_element(desc_.dtype, keys(layer, block, head), d * kv_block_tokens + slot);
    value[d] =
        load_element(desc_.dtype, values(layer, block, head), slot * value_stride(head_dim) + d);
  }
}

}  // namespace hearth::graph
