#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "graph/step.h"
#include "tensor/buffer.h"

namespace hearth::graph {

/// What one recurrent layer (gated delta rule behind a causal convolution) keeps of a sequence.
struct StateLayer {
  std::int64_t n_heads = 0;    // value heads
  std::int64_t key_dim = 0;    // a multiple of 4
  std::int64_t value_dim = 0;  // a multiple of 16
  std::int64_t conv_channels = 0;
  std::int64_t conv_taps = 0;

  bool operator==(const StateLayer&) const = default;

  /// Floats of the memory of all heads, and of the convolution's ring.
  [[nodiscard]] std::int64_t memory_floats() const { return n_heads * key_dim * value_dim; }
  [[nodiscard]] std::int64_t ring_floats() const { return (conv_taps - 1) * conv_channels; }
  [[nodiscard]] std::int64_t bytes() const {
    return (memory_floats() + ring_floats()) * static_cast<std::int64_t>(sizeof(float));
  }
};

/// The recurrent state of `n_slots` sequences. A slot spans every recurrent layer and has the same
/// size however long its sequence is.
struct StateCacheDesc {
  std::int64_t n_slots = 0;
  std::vector<StateLayer> layers;

  [[nodiscard]] std::int64_t bytes_per_slot() const;
  [[nodiscard]] std::int64_t bytes() const { return bytes_per_slot() * n_slots; }
  /// Errors: unsupported for heads whose lengths are not multiples of 4 (keys) and 16 (values).
  [[nodiscard]] Result<void> check() const;
};

/// Columns of a head's memory that lie side by side, so that the lanes of a vector are value
/// dimensions and no sum goes across lanes.
inline constexpr std::int64_t state_strip = 16;

/// The states in host memory, f32. Whoever starts a sequence zeroes its slot: ops do so at position
/// 0, so that nothing of the slot's last owner is left.
class HostStateCache {
 public:
  /// `desc` has passed check().
  explicit HostStateCache(StateCacheDesc desc);

  [[nodiscard]] const StateCacheDesc& desc() const { return desc_; }

  /// Memory of a layer: [n_heads][value_dim / 16][key_dim][16].
  [[nodiscard]] float* memory(std::int64_t layer, std::int64_t slot) {
    return storage_.data<float>(slot * slot_bytes_ + offsets_[static_cast<std::size_t>(layer)]);
  }
  /// Inputs of the convolution at the last positions: [conv_taps - 1][conv_channels], position p in
  /// row p mod (conv_taps - 1).
  [[nodiscard]] float* ring(std::int64_t layer, std::int64_t slot) {
    return memory(layer, slot) + desc_.layers[static_cast<std::size_t>(layer)].memory_floats();
  }
  /// The part of a layer's memory that begins at float `at`, with n floats, as it has to be before
  /// a row: zeroes at position 0, else what it was after the row before. It is in the slot in which
  /// the state after the row goes, to be changed there.
  float* memory_for(const StepView& step, std::int64_t row, std::int64_t layer, std::int64_t at,
                    std::int64_t n);
  /// The same for n channels of the ring, from channel `at` on; its rows are conv_channels apart.
  float* ring_for(const StepView& step, std::int64_t row, std::int64_t layer, std::int64_t at,
                  std::int64_t n);

  /// Makes slot `to` what slot `from` is: a snapshot, or the restoring of one.
  void copy(std::int64_t from, std::int64_t to);

 private:
  StateCacheDesc desc_;
  std::int64_t slot_bytes_ = 0;
  std::vector<std::int64_t> offsets_;  // bytes from the start of a slot, per layer
  Buffer storage_;
};

}  // namespace hearth::graph
