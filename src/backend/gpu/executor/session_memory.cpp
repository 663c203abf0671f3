#include "backend/gpu/executor/session_memory.h"

#include <algorithm>
#include <utility>

namespace hearth::backend::gpu {

Result<std::unique_ptr<SessionMemory>> SessionMemory::create(DeviceOwner& owner,
                                                             const graph::WeightTable& weights,
                                                             const graph::CacheDescs& caches) {
  std::unique_ptr<SessionMemory> memory(new SessionMemory(owner, weights, caches));
  HEARTH_TRY(memory->make_ready());
  return memory;
}

Result<void> SessionMemory::make_ready() {
  HEARTH_TRY(owner_.make_ready());
  if (has_contents()) {
    return {};
  }
  Device& device = owner_.device();
  HEARTH_ASSIGN(auto weights, DeviceWeights::create(device, weights_));
  HEARTH_ASSIGN(auto caches, DeviceCaches::create(device, caches_));
  HEARTH_ASSIGN(auto tables, BlockTables::create(device, caches_.kv.n_blocks));
  contents_ = Contents{
      .weights = std::move(weights), .caches = std::move(caches), .tables = std::move(tables)};
  return {};
}

Result<std::shared_ptr<StepMemory>> SessionMemory::step_memory(
    std::size_t turn, graph::RowBucket bucket, std::vector<graph::RopeParams> ropes) {
  auto& steps = contents().steps[turn];
  const auto found =
      std::ranges::find_if(steps, [&](const auto& step) { return step->serves(bucket, ropes); });
  if (found != steps.end()) {
    return *found;
  }
  HEARTH_ASSIGN(auto step, StepMemory::create(owner_.device(), bucket, std::move(ropes), weights_));
  steps.push_back(std::make_shared<StepMemory>(std::move(step)));
  return steps.back();
}

}  // namespace hearth::backend::gpu
