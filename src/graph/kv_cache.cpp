#include "graph/kv_cache.h"

#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/half.h"
#include "quant/registry.h"

namespace hearth::graph {
namespace {

void store_kv_row(DType dtype, const float* in, std::int64_t n, std::byte* row) {
  const auto count = static_cast<std::size_t>(n);
  switch (dtype) {
    case DType::f32:
      std::memcpy(row, in, count * sizeof(float));
      break;
    case DType::f16:
      for (std::size_t i = 0; i < count; ++i) {
        store(row, to_half(in[i]), i * sizeof(Half));
      }
      break;
    default:
      for (std::size_t i = 0; i < count; ++i) {
        store(row, to_bfloat16(in[i]), i * sizeof(BFloat16));
      }
  }
}

}  // namespace

std::int64_t KvCacheDesc::bytes_per_token() const {
  std::int64_t elements = 0;
  for (const auto& layer : layers) {
    elements += 2 * layer.n_kv_heads * layer.head_dim;  // keys and values
  }
  return quant::row_bytes(dtype, elements);
}

HostKvCache::HostKvCache(KvCacheDesc desc) : desc_(std::move(desc)) {
  HEARTH_ASSERT(desc_.dtype == DType::f32 || desc_.dtype == DType::f16 ||
                desc_.dtype == DType::bf16);
  std::int64_t offset = 0;
  for (const auto& layer : desc_.layers) {
    layer_offset_.push_back(offset);
    head_bytes_.push_back(quant::row_bytes(desc_.dtype, kv_block_tokens * layer.head_dim));
    half_bytes_.push_back(head_bytes_.back() * layer.n_kv_heads * desc_.n_blocks);
    offset += 2 * half_bytes_.back();
  }
  storage_ = Buffer(offset);
}

void HostKvCache::write(std::size_t layer, const std::int32_t* block_table, std::int64_t position,
                        std::int64_t head, const float* key, const float* value) {
  const std::int64_t head_dim = desc_.layers[layer].head_dim;
  const std::int64_t block = block_table[position / kv_block_tokens];
  HEARTH_ASSERT(block >= 0 && block < desc_.n_blocks);
  std::byte* row = base(layer) + head_offset(layer, block, head) +
                   position % kv_block_tokens * quant::row_bytes(desc_.dtype, head_dim);
  store_kv_row(desc_.dtype, key, head_dim, row);
  store_kv_row(desc_.dtype, value, head_dim, row + half_bytes_[layer]);
}

}  // namespace hearth::graph
