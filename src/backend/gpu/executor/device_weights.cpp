#include "backend/gpu/executor/device_weights.h"

#include <map>

#include "base/checked.h"

namespace hearth::backend::gpu {

Result<DeviceWeights> DeviceWeights::create(Device& device, const graph::WeightTable& weights) {
  DeviceWeights uploaded;
  std::map<const std::byte*, std::uint64_t> offsets;  // by where the data lies in the file
  for (const graph::Weight& weight : weights) {
    const Bytes data = weight.tensor.data;
    const auto [entry, is_new] =
        offsets.emplace(data.data(), static_cast<std::uint64_t>(uploaded.bytes_));
    uploaded.parts_.push_back({nullptr, entry->second, data.size()});
    if (is_new) {
      uploaded.bytes_ =
          round_up(uploaded.bytes_ + static_cast<std::int64_t>(data.size()), buffer_alignment);
    }
  }
  HEARTH_ASSIGN(const auto buffer,
                device.allocate(static_cast<std::uint64_t>(uploaded.bytes_), "weights"));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    BufferPart& part = uploaded.parts_[i];
    part.buffer = buffer;
    if (offsets.erase(weights[i].tensor.data.data()) == 1) {  // once
      HEARTH_TRY(device.upload(part, weights[i].tensor.data));
    }
  }
  return uploaded;
}

}  // namespace hearth::backend::gpu
