#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "graph/value.h"
#include "tensor/buffer.h"

namespace hearth::graph {

/// A weight table with data for every weight: those that have to be made are made at once, and kept
/// as long as this. For devices that read weights where they lie. Reading is thread-safe.
class LoadedWeights {
 public:
  LoadedWeights() = default;

  /// What `weights` borrows must outlive the result. Errors: those of WeightOrigin::make.
  static Result<LoadedWeights> load(const WeightTable& weights);

  [[nodiscard]] const WeightTable& table() const { return table_; }
  /// Of what was made.
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  WeightTable table_;
  std::vector<Buffer> made_;
  std::int64_t bytes_ = 0;
};

}  // namespace hearth::graph
