#pragma once
/// The shapes that synthetic models can have: a row of numbers each.

#include <span>
#include <string_view>

#include "base/result.h"
#include "model/hyper_params.h"

namespace hearth::model {

/// What decides the tensors of a synthetic model and their sizes. Rows of weights are multiples of
/// 256, so that every quant type fits.
struct ModelShape {
  std::string_view name;
  HyperParams params;
  float rope_base = 0;
  bool is_tied = false;  // the output head is the embedding table
};

/// By size.
std::span<const ModelShape> all_model_shapes();

/// Errors: not_found, with the list of known ones.
Result<const ModelShape*> find_model_shape(std::string_view name);

}  // namespace hearth::model
