#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "graph/value.h"
#include "model/checkpoint.h"
#include "tensor/buffer.h"

namespace hearth::model {

/// The weights of a model, bound by canonical name with the exact shape that its metadata implies.
/// Views borrow from the file; vectors that are not F32 in the file are widened into `owned`.
/// Matrices that the checkpoint has to make are left to those who read them.
struct BoundWeights {
  graph::WeightTable table;
  std::vector<Buffer> owned;
};

/// Finds tensors by name and checks their shapes. Errors are invalid_file and name file, tensor,
/// expected and found.
class WeightBinder {
 public:
  explicit WeightBinder(const Checkpoint& file) : file_(file) {}

  [[nodiscard]] const Checkpoint& file() const { return file_; }

  /// A matrix [out, in] of any type with numbers.
  Result<graph::WeightId> matrix(std::string_view name, std::int64_t out, std::int64_t in);
  Result<std::optional<graph::WeightId>> find_matrix(std::string_view name, std::int64_t out,
                                                     std::int64_t in);
  /// One row [1, in], which files store as a vector.
  Result<graph::WeightId> row(std::string_view name, std::int64_t in);
  /// A matrix for each expert, [n_experts, out, in].
  Result<graph::WeightId> experts(std::string_view name, const Shape& shape);
  Result<std::optional<graph::WeightId>> find_experts(std::string_view name, const Shape& shape);
  /// Some rows of a matrix [out, in] in another order: row i is row order[i] of the tensor. Copies
  /// them as they are stored; `part` names the result beside others of the same tensor.
  Result<graph::WeightId> reordered_rows(std::string_view name, std::int64_t out, std::int64_t in,
                                         std::string_view part,
                                         std::span<const std::int64_t> order);
  /// Numbers of any shape, as F32.
  Result<graph::WeightId> numbers(std::string_view name, const Shape& shape);
  /// A vector [n], as F32.
  Result<graph::WeightId> vector(std::string_view name, std::int64_t n);
  Result<std::optional<graph::WeightId>> find_vector(std::string_view name, std::int64_t n);
  Result<std::optional<graph::WeightId>> find_numbers(std::string_view name, const Shape& shape);

  /// Whether the file has a tensor of this name.
  [[nodiscard]] bool has(std::string_view name) const { return file_.find(name) != nullptr; }
  /// A weight that was bound.
  [[nodiscard]] const TensorView& tensor(graph::WeightId id) const {
    return bound_.table[graph::index(id)].tensor;
  }

  /// Tensors whose names begin so are known to this architecture, though it does not read them.
  void set_aside(std::string prefix) { set_aside_.push_back(std::move(prefix)); }
  /// Tensors of the file that nothing asked for.
  [[nodiscard]] std::vector<std::string> unused() const;

  BoundWeights finish() && { return std::move(bound_); }

 private:
  Result<std::optional<graph::WeightId>> find_weights(std::string_view name, const Shape& shape);
  [[nodiscard]] Failure missing(std::string_view name) const;
  [[nodiscard]] Failure wrong_shape(const CheckpointTensor& tensor, const Shape& expected) const;
  [[nodiscard]] Failure no_numbers(const CheckpointTensor& tensor) const;
  /// The data of a tensor as it is stored, made if it has to be.
  Result<TensorView> view_of(const CheckpointTensor& tensor);
  /// A view without data means that it is to be made.
  graph::WeightId add(const CheckpointTensor& tensor, const TensorView& view);

  const Checkpoint& file_;
  BoundWeights bound_;
  std::map<std::string_view, graph::WeightId> by_name_;
  std::vector<std::string> set_aside_;  // prefixes of names
};

}  // namespace hearth::model
