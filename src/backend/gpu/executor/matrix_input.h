#pragma once

#include <map>
#include <optional>
#include <vector>

#include "backend/gpu/executor/recorder.h"
#include "backend/gpu/kernels/input.h"

namespace hearth::backend::gpu {

/// What products of one launch read, in each form that a matrix among them needs.
class MatrixInput {
 public:
  /// A value, [normed ->] [times a gate].
  explicit MatrixInput(graph::ValueId value, std::optional<graph::RmsNorm> norm = std::nullopt,
                       std::optional<plan::Gate> gate = std::nullopt)
      : value_(value), norm_(std::move(norm)), gate_(std::move(gate)) {}

  /// Records what brings the value into the form for that matrix, unless it is there already.
  void prepare_for(graph::WeightId matrix, Recorder& recorder);

  /// The buffers that the product with that matrix reads: codes, scales and sums, or values.
  [[nodiscard]] const std::vector<BufferPart>& buffers(graph::WeightId matrix,
                                                       const Recorder& recorder) const;
  [[nodiscard]] graph::ValueId value() const { return value_; }

  /// What kernels are told that prepare the value, and the buffers of its norm and its gate.
  [[nodiscard]] InputParams input_params(const Recorder& recorder) const;
  [[nodiscard]] BufferPart norm_buffer(const Recorder& recorder) const {
    return norm_ ? recorder.weight(norm_->weight) : recorder.absent();
  }
  [[nodiscard]] BufferPart gate_buffer(const Recorder& recorder) const {
    return gate_ ? recorder.value(gate_->value) : recorder.absent();
  }

 private:
  graph::ValueId value_;
  std::optional<graph::RmsNorm> norm_;
  std::optional<plan::Gate> gate_;
  std::map<std::int64_t, std::vector<BufferPart>> forms_;  // by activation block; 0: floats
};

}  // namespace hearth::backend::gpu
