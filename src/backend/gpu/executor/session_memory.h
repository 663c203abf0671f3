#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "backend/gpu/executor/block_tables.h"
#include "backend/gpu/executor/device_caches.h"
#include "backend/gpu/executor/device_owner.h"
#include "backend/gpu/executor/device_weights.h"
#include "backend/gpu/executor/step_memory.h"

namespace hearth::backend::gpu {

/// What a session has on its device, shared by its executables. A lost device takes it along.
class SessionMemory final : public DeviceOwner::Tenant {
 public:
  struct Contents {
    DeviceWeights weights;
    DeviceCaches caches;
    BlockTables tables;
    std::shared_ptr<Buffer> arena;    // these three only grow; executables keep those that they
    std::shared_ptr<Buffer> scratch;  // were recorded with
    std::shared_ptr<Buffer> logits;   // in memory of the host
    std::array<std::vector<std::shared_ptr<StepMemory>>, 2> steps;  // by turn, for each bucket
  };

  /// `weights` must outlive it. Errors: out_of_memory; internal when the device failed.
  static Result<std::unique_ptr<SessionMemory>> create(DeviceOwner& owner,
                                                       const graph::WeightTable& weights,
                                                       const graph::CacheDescs& caches);

  /// Makes the device ready and brings back what it lacks: weights, and caches that hold nothing.
  /// To be called before contents() are used. Errors: those of create() and of the opener.
  Result<void> make_ready();
  void let_go() override { contents_.reset(); }

  /// Where steps of a bucket lie, for all executables that have those rotations: nothing else is
  /// run while one has a step under way, and of two of its own they have a turn each. After
  /// make_ready() only. Errors: out_of_memory.
  Result<std::shared_ptr<StepMemory>> step_memory(std::size_t turn, graph::RowBucket bucket,
                                                  std::vector<graph::RopeParams> ropes);

  [[nodiscard]] DeviceOwner& owner() { return owner_; }
  [[nodiscard]] Device& device() { return owner_.device(); }
  [[nodiscard]] const graph::WeightTable& weight_table() const { return weights_; }
  [[nodiscard]] const graph::CacheDescs& cache_descs() const { return caches_; }
  [[nodiscard]] bool has_contents() const { return contents_.has_value(); }
  [[nodiscard]] Contents& contents() { return *contents_; }
  [[nodiscard]] const Contents& contents() const { return *contents_; }

 private:
  SessionMemory(DeviceOwner& owner, const graph::WeightTable& weights,
                const graph::CacheDescs& caches)
      : Tenant(owner), weights_(weights), caches_(caches) {}

  const graph::WeightTable& weights_;
  graph::CacheDescs caches_;
  std::optional<Contents> contents_;
};

}  // namespace hearth::backend::gpu
