#include "graph/state_cache.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/fail.h"

namespace hearth::graph {

std::int64_t StateCacheDesc::bytes_per_slot() const {
  std::int64_t bytes = 0;
  for (const auto& layer : layers) {
    bytes += layer.bytes();
  }
  return bytes;
}

Result<void> StateCacheDesc::check() const {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto& layer = layers[i];
    if (layer.n_heads < 1 || layer.key_dim < 4 || layer.key_dim % 4 != 0 ||
        layer.value_dim < state_strip || layer.value_dim % state_strip != 0 ||
        layer.conv_channels < 1 || layer.conv_taps < 2) {
      return fail(ErrorCode::unsupported,
                  "recurrent layer {} has {} heads with keys of length {} and values of length {}, "
                  "{} channels and {} taps; expected multiples of 4 and {}, and 2 taps or more",
                  i, layer.n_heads, layer.key_dim, layer.value_dim, layer.conv_channels,
                  layer.conv_taps, state_strip);
    }
  }
  return {};
}

HostStateCache::HostStateCache(StateCacheDesc desc) : desc_(std::move(desc)) {
  HEARTH_ASSERT(desc_.check().has_value());
  for (const auto& layer : desc_.layers) {
    offsets_.push_back(slot_bytes_);
    slot_bytes_ += layer.bytes();
  }
  storage_ = Buffer(desc_.bytes());
}

float* HostStateCache::memory_for(const StepView& step, std::int64_t row, std::int64_t layer,
                                  std::int64_t at, std::int64_t n) {
  const std::int64_t after = step.state_after(row);
  float* part = memory(layer, after) + at;
  if (step.positions[static_cast<std::size_t>(row)] == 0) {
    std::fill_n(part, n, 0.0f);
  } else if (const std::int64_t before = step.state_before(row); before != after) {
    std::copy_n(memory(layer, before) + at, n, part);
  }
  return part;
}

float* HostStateCache::ring_for(const StepView& step, std::int64_t row, std::int64_t layer,
                                std::int64_t at, std::int64_t n) {
  const auto& desc = desc_.layers[static_cast<std::size_t>(layer)];
  for (std::int64_t i = 0; i < desc.conv_taps - 1; ++i) {
    memory_for(step, row, layer, desc.memory_floats() + i * desc.conv_channels + at, n);
  }
  return ring(layer, step.state_after(row)) + at;
}

void HostStateCache::copy(std::int64_t from, std::int64_t to) {
  HEARTH_ASSERT(from >= 0 && from < desc_.n_slots && to >= 0 && to < desc_.n_slots);
  if (from != to) {
    std::copy_n(storage_.data<std::byte>(from * slot_bytes_), slot_bytes_,
                storage_.data<std::byte>(to * slot_bytes_));
  }
}

}  // namespace hearth::graph
