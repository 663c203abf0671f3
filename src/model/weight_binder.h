#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/gguf/reader.h"
#include "graph/value.h"
#include "tensor/buffer.h"

namespace hearth::model {

/// The weights of a model, bound by canonical name with the exact shape that its metadata implies.
/// Views borrow from the file; vectors stored in another float type than F32 are widened into
/// `owned`.
struct BoundWeights {
  graph::WeightTable table;
  std::vector<Buffer> owned;
};

/// Finds tensors by name and checks their shapes. Errors are invalid_file and name file, tensor,
/// expected and found.
class WeightBinder {
 public:
  explicit WeightBinder(const formats::GgufFile& file) : file_(file) {}

  [[nodiscard]] const formats::GgufFile& file() const { return file_; }

  /// A matrix [out, in] of any type with numbers.
  Result<graph::WeightId> matrix(std::string_view name, std::int64_t out, std::int64_t in);
  Result<std::optional<graph::WeightId>> find_matrix(std::string_view name, std::int64_t out,
                                                     std::int64_t in);
  /// A vector [n], as F32.
  Result<graph::WeightId> vector(std::string_view name, std::int64_t n);
  Result<std::optional<graph::WeightId>> find_vector(std::string_view name, std::int64_t n);

  /// Tensors of the file that nothing asked for.
  [[nodiscard]] std::vector<std::string> unused() const;

  BoundWeights finish() && { return std::move(bound_); }

 private:
  [[nodiscard]] Failure missing(std::string_view name) const;
  [[nodiscard]] Failure wrong_shape(const formats::GgufTensor& tensor, const Shape& expected) const;
  graph::WeightId add(const formats::GgufTensor& tensor, const TensorView& view);

  const formats::GgufFile& file_;
  BoundWeights bound_;
  std::map<std::string_view, graph::WeightId> by_name_;
};

}  // namespace hearth::model
