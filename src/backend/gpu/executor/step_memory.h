#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/gpu/host/device.h"
#include "graph/graph.h"
#include "graph/ops/rope.h"
#include "graph/step.h"

namespace hearth::backend::gpu {

/// The places in which kernels find a step (kernels/*.h say who reads what).
struct StepParts {
  BufferPart counts;                                    // rows, rows with logits, sequences
  BufferPart tokens, positions, sequences, logit_rows;  // tokens: as kernels/embed.h has them
  BufferPart row_starts;  // first row of each sequence, and the end of the last
  BufferPart state_before, state_after;
  BufferPart row_sources, row_targets;
};

/// A rotation that a plan asks for, with the cosines and sines of a step's rows.
struct StepAngles {
  graph::RopeParams params;
  graph::RopeTable table;
  BufferPart part;  // [rows, n_rot]
};

/// A step on the device, for at most a bucket's rows; written into memory of the host, from which
/// the recorded commands copy it.
class StepMemory {
 public:
  /// `ropes`: the rotations of the plan, each once. Errors: out_of_memory.
  static Result<StepMemory> create(Device& device, graph::RowBucket bucket,
                                   std::vector<graph::RopeParams> ropes,
                                   const graph::WeightTable& weights);

  /// Whether it serves that bucket and no other, and at least those rotations.
  [[nodiscard]] bool serves(graph::RowBucket bucket,
                            const std::vector<graph::RopeParams>& ropes) const;

  /// Writes a step for the next submission. Nothing submitted before may still be running.
  void write(const graph::StepView& step);

  /// The copy with which every step begins.
  void record_copy(CommandList& list) const { list.copy(whole(device_), whole(host_)); }

  [[nodiscard]] const StepParts& parts() const { return parts_; }
  [[nodiscard]] const BufferPart& angles(const graph::RopeParams& params) const;
  [[nodiscard]] std::int64_t bytes() const {
    return static_cast<std::int64_t>(device_->size_bytes());
  }

 private:
  template <class T>
  [[nodiscard]] T* host_array(const BufferPart& part) const;
  void write_row_starts(const graph::StepView& step);
  void write_angles(const graph::StepView& step);

  graph::RowBucket bucket_;
  std::shared_ptr<Buffer> device_, host_;
  StepParts parts_;
  std::vector<StepAngles> angles_;
};

}  // namespace hearth::backend::gpu
