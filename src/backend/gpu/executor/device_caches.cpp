#include "backend/gpu/executor/device_caches.h"

#include "quant/registry.h"

namespace hearth::backend::gpu {

Result<DeviceCaches> DeviceCaches::create(Device& device, const graph::CacheDescs& descs) {
  DeviceCaches caches;
  caches.descs_ = descs;
  HEARTH_TRY(caches.create_kv(device));
  HEARTH_TRY(caches.create_states(device));
  if (descs.rows.bytes() > 0) {
    HEARTH_ASSIGN(auto rows,
                  device.allocate(static_cast<std::uint64_t>(descs.rows.bytes()), "stored rows"));
    caches.rows_ = whole(std::move(rows));
  }
  return caches;
}

Result<void> DeviceCaches::create_kv(Device& device) {
  const auto half_bytes = [this](const graph::KvLayer& layer) {
    const std::int64_t panel =
        graph::kv_block_tokens * quant::row_bytes(descs_.kv.dtype, layer.head_dim);
    return static_cast<std::uint64_t>(descs_.kv.n_blocks * layer.n_kv_heads * panel);
  };
  std::uint64_t bytes = 0;
  for (const auto& layer : descs_.kv.layers) {
    bytes += 2 * half_bytes(layer);
  }
  if (bytes == 0) {
    return {};
  }
  HEARTH_ASSIGN(const auto buffer, device.allocate(bytes, "KV cache"));
  std::uint64_t offset = 0;
  for (const auto& layer : descs_.kv.layers) {
    const std::uint64_t half = half_bytes(layer);
    keys_.push_back({buffer, offset, half});
    values_.push_back({buffer, offset + half, half});
    offset += 2 * half;
  }
  return {};
}

Result<void> DeviceCaches::create_states(Device& device) {
  const std::uint64_t slot_bytes = slot_stride() * sizeof(float);
  const std::uint64_t bytes = slot_bytes * static_cast<std::uint64_t>(descs_.states.n_slots);
  if (bytes == 0) {
    return {};
  }
  HEARTH_ASSIGN(states_, device.allocate(bytes, "recurrent state"));
  std::uint64_t offset = 0;  // in slot 0
  for (const auto& layer : descs_.states.layers) {
    // Through to the layer's part in the last slot.
    const auto part = [&](std::int64_t floats) {
      const auto length = static_cast<std::uint64_t>(floats) * sizeof(float);
      const BufferPart result{states_, offset, bytes - slot_bytes + length};
      offset += length;
      return result;
    };
    memories_.push_back(part(layer.memory_floats()));
    rings_.push_back(part(layer.ring_floats()));
  }
  return {};
}

}  // namespace hearth::backend::gpu
