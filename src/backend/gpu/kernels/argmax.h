#pragma once
/// The largest of each row of logits, found without taking them to the host (graph/ops/argmax.h).

#include "backend/gpu/dialect/scalars.h"

namespace hearth::backend::gpu {

#define ARGMAX_PART 2048  // columns that a threadgroup compares

/// argmax_part_f32: buffers: counts, x [rows, n], parts u32 [rows, n_parts, 2]: the column of the
/// part's largest, and its bits. Grid (n_parts, capacity of rows) with
/// n_parts = ceil(n_columns / ARGMAX_PART), 256 threads.
/// argmax_f32: buffers: counts, parts, y [rows, 2]: the column, as a float, and the value of the
/// row's largest; chosen u32 [rows]: the columns again, for the next step (kernels/embed.h).
/// Grid (capacity of rows), 32 threads.
struct ArgmaxParams {
  u32 n;
  u32 axis;  // of rows
  u32 n_columns;
  u32 n_parts;
};

}  // namespace hearth::backend::gpu
