#include "model/weight_binder.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "quant/registry.h"

namespace hearth::model {

Result<graph::WeightId> WeightBinder::matrix(std::string_view name, std::int64_t out,
                                             std::int64_t in) {
  HEARTH_ASSIGN(auto found, find_matrix(name, out, in));
  if (!found) {
    return missing(name);
  }
  return *found;
}

Result<graph::WeightId> WeightBinder::vector(std::string_view name, std::int64_t n) {
  HEARTH_ASSIGN(auto found, find_vector(name, n));
  if (!found) {
    return missing(name);
  }
  return *found;
}

Result<graph::WeightId> WeightBinder::row(std::string_view name, std::int64_t in) {
  const auto* tensor = file_.find(name);
  if (tensor == nullptr) {
    return missing(name);
  }
  const Shape expected{in};
  const Shape as_matrix{1, in};
  if (tensor->shape != expected && tensor->shape != as_matrix) {
    return wrong_shape(*tensor, expected);
  }
  if (!quant::is_float_decodable(tensor->dtype)) {
    return no_numbers(*tensor);
  }
  return add(*tensor, {tensor->dtype, as_matrix, tensor->mapped});
}

Result<graph::WeightId> WeightBinder::experts(std::string_view name, const Shape& shape) {
  HEARTH_ASSIGN(auto found, find_experts(name, shape));
  if (!found) {
    return missing(name);
  }
  return *found;
}

Result<graph::WeightId> WeightBinder::numbers(std::string_view name, const Shape& shape) {
  HEARTH_ASSIGN(auto found, find_numbers(name, shape));
  if (!found) {
    return missing(name);
  }
  return *found;
}

Result<std::optional<graph::WeightId>> WeightBinder::find_matrix(std::string_view name,
                                                                 std::int64_t out,
                                                                 std::int64_t in) {
  return find_weights(name, Shape{out, in});
}

Result<std::optional<graph::WeightId>> WeightBinder::find_experts(std::string_view name,
                                                                  const Shape& shape) {
  return find_weights(name, shape);
}

Result<std::optional<graph::WeightId>> WeightBinder::find_vector(std::string_view name,
                                                                 std::int64_t n) {
  return find_numbers(name, Shape{n});
}

Result<std::optional<graph::WeightId>> WeightBinder::find_weights(std::string_view name,
                                                                  const Shape& shape) {
  const auto* tensor = file_.find(name);
  if (tensor == nullptr) {
    return std::nullopt;
  }
  if (tensor->shape != shape) {
    return wrong_shape(*tensor, shape);
  }
  if (!quant::is_float_decodable(tensor->dtype)) {
    return no_numbers(*tensor);
  }
  return add(*tensor, {tensor->dtype, shape, tensor->mapped});
}

Result<std::optional<graph::WeightId>> WeightBinder::find_numbers(std::string_view name,
                                                                  const Shape& shape) {
  const auto* tensor = file_.find(name);
  if (tensor == nullptr) {
    return std::nullopt;
  }
  if (tensor->shape != shape) {
    return wrong_shape(*tensor, shape);
  }
  if (!quant::is_float_decodable(tensor->dtype)) {
    return no_numbers(*tensor);
  }
  HEARTH_ASSIGN(const TensorView view, view_of(*tensor));
  if (tensor->dtype == DType::f32) {
    return add(*tensor, view);
  }
  const std::int64_t n = shape.elements();
  auto& widened = bound_.owned.emplace_back(n * static_cast<std::int64_t>(sizeof(float)));
  quant::decode(tensor->dtype, view.data, {widened.data<float>(), static_cast<std::size_t>(n)});
  return add(*tensor, {DType::f32, shape, widened.bytes()});
}

Result<graph::WeightId> WeightBinder::reordered_rows(std::string_view name, std::int64_t out,
                                                     std::int64_t in, std::string_view part,
                                                     std::span<const std::int64_t> order) {
  HEARTH_ASSIGN(const auto whole, matrix(name, out, in));
  const graph::Weight& weight = bound_.table[graph::index(whole)];
  Buffer made;
  if (weight.origin.make) {
    HEARTH_ASSIGN(made, weight.origin.make());
  }
  const TensorView from{weight.tensor.dtype, weight.tensor.shape,
                        weight.origin.make ? Bytes(made.bytes()) : weight.tensor.data};
  const std::int64_t row_bytes = quant::row_bytes(from.dtype, in);
  const auto n_rows = static_cast<std::int64_t>(order.size());
  auto& rows = bound_.owned.emplace_back(n_rows * row_bytes);
  for (std::int64_t i = 0; i < n_rows; ++i) {
    std::copy_n(from.data.data() + order[static_cast<std::size_t>(i)] * row_bytes, row_bytes,
                rows.bytes().data() + i * row_bytes);
  }
  bound_.table.push_back({.name = format("{} ({})", name, part),
                          .tensor = {from.dtype, Shape{n_rows, in}, rows.bytes()}});
  return static_cast<graph::WeightId>(bound_.table.size() - 1);
}

std::vector<std::string> WeightBinder::unused() const {
  std::vector<std::string> names;
  for (const auto& tensor : file_.tensors()) {
    const bool is_set_aside =
        std::any_of(set_aside_.begin(), set_aside_.end(),
                    [&](const auto& prefix) { return tensor.name.starts_with(prefix); });
    if (!is_set_aside && !by_name_.contains(tensor.name)) {
      names.emplace_back(tensor.name);
    }
  }
  return names;
}

Failure WeightBinder::missing(std::string_view name) const {
  return fail(ErrorCode::invalid_file, "{}: tensor '{}' is missing", file_.shard_name(0), name);
}

Failure WeightBinder::wrong_shape(const CheckpointTensor& tensor, const Shape& expected) const {
  return fail(
      ErrorCode::invalid_file, "{}: tensor '{}' has shape {}, expected {} from the metadata",
      file_.shard_name(tensor.shard), tensor.name, to_string(tensor.shape), to_string(expected));
}

Failure WeightBinder::no_numbers(const CheckpointTensor& tensor) const {
  return fail(ErrorCode::invalid_file, "{}: tensor '{}' is {}, expected a type that holds numbers",
              file_.shard_name(tensor.shard), tensor.name, quant::name(tensor.dtype));
}

Result<TensorView> WeightBinder::view_of(const CheckpointTensor& tensor) {
  if (!tensor.make) {
    return TensorView{tensor.dtype, tensor.shape, tensor.mapped};
  }
  HEARTH_ASSIGN(bound_.owned.emplace_back(), tensor.copy());
  return TensorView{tensor.dtype, tensor.shape, bound_.owned.back().bytes()};
}

graph::WeightId WeightBinder::add(const CheckpointTensor& tensor, const TensorView& view) {
  const auto [entry, is_new] =
      by_name_.try_emplace(tensor.name, static_cast<graph::WeightId>(bound_.table.size()));
  if (is_new) {
    graph::WeightOrigin origin;
    if (view.data.empty()) {
      origin.make = [&tensor] { return tensor.copy(); };
    } else {
      origin.is_mapped = view.data.data() == tensor.mapped.data();
    }
    bound_.table.push_back({std::string(tensor.name), view, std::move(origin)});
  }
  return entry->second;
}

}  // namespace hearth::model
