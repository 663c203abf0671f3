#pragma once
/// What products of integers and of floats share: which rows a threadgroup multiplies, and what
/// becomes of a result.

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/kernels/product.h"

namespace hearth::backend::gpu {

/// The rows of a threadgroup.
struct ProductPlace {
  u32 n_rows;        // 0: none, the threadgroup has nothing to do
  u32 y_row;         // the first
  u32 x_row;         // the first
  u32 step_row;      // the first
  u64 first_weight;  // row of the matrix, or of all matrices of experts, that output 0 multiplies
};

DEVICE_FN ProductPlace product_place(PARAMS(ProductParams) p, DEVICE(const u32) counts,
                                     DEVICE(const f32) routing, u32 group_x, u32 group_z) {
  const u32 n_rows = counts[p.axis];
  ProductPlace place = {0, 0, 0, 0, 0};
  if (p.n_used == 0u) {
    place.step_row = group_x * PRODUCT_GROUP_ROWS;
    place.y_row = place.step_row;
    place.x_row = place.step_row;
    place.n_rows =
        place.step_row < n_rows ? min_u32(n_rows - place.step_row, PRODUCT_GROUP_ROWS) : 0u;
  } else if (group_z < n_rows) {
    const u32 expert = u32(routing[u64(group_z) * 2u * p.n_used + group_x]);
    place.n_rows = 1;
    place.step_row = group_z;
    place.y_row = group_z * p.n_used + group_x;
    place.x_row = p.has_x_per_slot != 0u ? place.y_row : group_z;
    place.first_weight = u64(expert) * p.expert_rows + p.first_row;
  }
  return place;
}

/// What is stored for a product, given where that is in y.
DEVICE_FN f32 product_result(PARAMS(ProductParams) p, f32 product, u64 at, u32 output, u32 row,
                             DEVICE(const f32) bias, DEVICE(const f32) gate,
                             DEVICE(const f32) residual) {
  f32 result = product;
  if (p.has_bias != 0u) {
    result = result + bias[output];
  }
  if (p.gate == PRODUCT_ROW_GATE) {
    result = result * activate_f32(p.activation, gate[row]);
  } else if (p.gate == PRODUCT_ELEMENT_GATE) {
    result = activate_f32(p.activation, gate[at]) * result;
  }
  return p.has_residual != 0u ? result + residual[at] : result;
}

}  // namespace hearth::backend::gpu
