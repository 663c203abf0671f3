#pragma once
/// What threadgroups of products with columns take, and what becomes of results
/// (kernels/columns.h).

#include "backend/gpu/kernels/columns.h"
#include "backend/gpu/kernels/lanes.h"
#include "backend/gpu/kernels/strip_group.h"

namespace hearth::backend::gpu {

/// What a threadgroup multiplies.
struct ColumnGroup {
  u32 part;
  u32 first;  // strip of the part, of floats the number of the threadgroup
};

DEVICE_FN ColumnGroup column_group(PARAMS(ColumnParams) p, u32 group) {
  ColumnGroup result = {0, 0};
  u32 skipped = 0;
  UNROLL for (u32 i = 0; i + 1 < COLUMN_PARTS; ++i) {
    if (group >= p.group_end[i]) {
      result.part = i + 1;
      skipped = p.group_end[i];
    }
  }
  result.first = (group - skipped) * (p.type[result.part] == STRIP_F32 ? 1u : p.group_strips);
  return result;
}

/// What comes to a product of a row before it is stored.
struct ColumnEnd {
  f32 factor;
  f32 added;
};

/// For output `output` of a row, which is stored at `to` of y.
DEVICE_FN ColumnEnd column_end(PARAMS(ColumnParams) p, u32 part, u32 row, u32 output, u64 to,
                               DEVICE(const f32) row_gate, DEVICE(const f32) residual,
                               DEVICE(const f32) slots, DEVICE(const f32) routing) {
  ColumnEnd end = {1.0f, 0.0f};
  if (p.has_row_gate != 0u) {
    end.factor = activate_f32(p.row_activation, row_gate[row]);
  }
  const bool has_residual = p.has_residual != 0u && part == 0u;
  if (p.n_slots != 0u) {
    DEVICE(const f32) weights = routing + (u64(row) * 2u * p.n_slots + p.n_slots);
    DEVICE(const f32) from = slots + (u64(row) * p.n_slots * p.n_out[0] + output);
    for (u32 slot = 0; slot < p.n_slots; ++slot) {
      end.added = fma_f32(weights[slot], from[u64(slot) * p.n_out[0]], end.added);
    }
    end.added = has_residual ? end.added + residual[to] : end.added;
  } else if (has_residual) {
    end.added = residual[to];
  }
  return end;
}

DEVICE_FN f32 column_result(PARAMS(ColumnParams) p, u32 part, f32 product, ColumnEnd end) {
  const f32 result = p.has_row_gate != 0u ? product * end.factor : product;
  const bool is_sum = p.n_slots != 0u || (p.has_residual != 0u && part == 0u);
  return is_sum ? end.added + result : result;
}

}  // namespace hearth::backend::gpu
