#pragma once

#include <map>
#include <optional>
#include <span>
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

  /// Records what brings the value into the form for each of the matrices, unless it is there
  /// already.
  void prepare_for(std::span<const graph::WeightId> matrices, Recorder& recorder);

  /// The same for kernels that quantize for themselves: floats.
  BufferPart floats(Recorder& recorder);

  /// Records what brings the value into the form of kernels/columns.h, with floats if they are
  /// wanted, too; once.
  void prepare_columns(bool with_floats, Recorder& recorder);
  /// Of that form: codes, digits, scales.
  [[nodiscard]] const std::vector<BufferPart>& columns() const { return columns_; }
  /// The value as floats, which has been prepared.
  [[nodiscard]] const BufferPart& prepared_floats() const { return forms_.at(0).front(); }

  /// The buffers that the product with that matrix reads: codes, scales and sums, or values.
  [[nodiscard]] const std::vector<BufferPart>& buffers(graph::WeightId matrix,
                                                       const Recorder& recorder) const;
  [[nodiscard]] graph::ValueId value() const { return value_; }

  /// The norm, if it is all that becomes of the value, and of whole rows.
  [[nodiscard]] const graph::RmsNorm* row_norm(const Recorder& recorder) const;

 private:
  /// `block`: of values that share a scale; 0: floats. These with codes if they are wanted, too,
  /// and one launch makes both.
  void prepare(std::int64_t block, bool wants_floats, Recorder& recorder);
  [[nodiscard]] InputParams input_params(const Recorder& recorder) const;

  graph::ValueId value_;
  std::optional<graph::RmsNorm> norm_;
  std::optional<plan::Gate> gate_;
  std::vector<BufferPart> columns_;                        // empty until they are prepared
  std::map<std::int64_t, std::vector<BufferPart>> forms_;  // by activation block; 0: floats
};

}  // namespace hearth::backend::gpu
