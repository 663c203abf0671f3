#include "model/weight_binder.h"

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

Result<std::optional<graph::WeightId>> WeightBinder::find_matrix(std::string_view name,
                                                                 std::int64_t out,
                                                                 std::int64_t in) {
  const auto* tensor = file_.find(name);
  if (tensor == nullptr) {
    return std::nullopt;
  }
  const Shape expected{out, in};
  if (tensor->shape != expected) {
    return wrong_shape(*tensor, expected);
  }
  if (!quant::is_float_decodable(tensor->dtype)) {
    return fail(ErrorCode::invalid_file,
                "{}: tensor '{}' is {}, expected a type that holds weights",
                file_.shard_name(tensor->shard), name, quant::name(tensor->dtype));
  }
  return add(*tensor, tensor->view());
}

Result<std::optional<graph::WeightId>> WeightBinder::find_vector(std::string_view name,
                                                                 std::int64_t n) {
  const auto* tensor = file_.find(name);
  if (tensor == nullptr) {
    return std::nullopt;
  }
  const Shape expected{n};
  if (tensor->shape != expected) {
    return wrong_shape(*tensor, expected);
  }
  if (tensor->dtype == DType::f32) {
    return add(*tensor, tensor->view());
  }
  if (!quant::is_float_decodable(tensor->dtype)) {
    return fail(ErrorCode::invalid_file,
                "{}: tensor '{}' is {}, expected a type that holds numbers",
                file_.shard_name(tensor->shard), name, quant::name(tensor->dtype));
  }
  auto& widened = bound_.owned.emplace_back(n * static_cast<std::int64_t>(sizeof(float)));
  quant::decode(tensor->dtype, tensor->data, {widened.data<float>(), static_cast<std::size_t>(n)});
  return add(*tensor, {DType::f32, expected, widened.bytes()});
}

std::vector<std::string> WeightBinder::unused() const {
  std::vector<std::string> names;
  for (const auto& tensor : file_.tensors()) {
    if (!by_name_.contains(tensor.name)) {
      names.emplace_back(tensor.name);
    }
  }
  return names;
}

Failure WeightBinder::missing(std::string_view name) const {
  return fail(ErrorCode::invalid_file, "{}: tensor '{}' is missing", file_.shard_name(0), name);
}

Failure WeightBinder::wrong_shape(const formats::GgufTensor& tensor, const Shape& expected) const {
  return fail(
      ErrorCode::invalid_file, "{}: tensor '{}' has shape {}, expected {} from the metadata",
      file_.shard_name(tensor.shard), tensor.name, to_string(tensor.shape), to_string(expected));
}

graph::WeightId WeightBinder::add(const formats::GgufTensor& tensor, const TensorView& view) {
  const auto [entry, is_new] =
      by_name_.try_emplace(tensor.name, static_cast<graph::WeightId>(bound_.table.size()));
  if (is_new) {
    const bool is_mapped = view.data.data() == tensor.data.data();
    bound_.table.push_back({std::string(tensor.name), view, is_mapped});
  }
  return entry->second;
}

}  // namespace hearth::model
