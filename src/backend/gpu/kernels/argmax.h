#pragma once
/// The most probable token of every row of logits, found without taking the logits to the host.

#include "backend/gpu/dialect/scalars.h"

namespace hearth::backend::gpu {

#define ARGMAX_PART 2048  // columns that a threadgroup compares
#define ARGMAX_NAN 0xffffffffu

/// argmax_part_f32: buffers: counts, logits [logit rows, n], parts u32 [logit rows, n_parts, 2]:
/// the bits of the part's largest logit and its column, ARGMAX_NAN if there is a NaN.
/// Grid (n_parts, capacity of logit rows) with n_parts = ceil(n / ARGMAX_PART), 256 threads.
/// argmax_f32: buffers: counts, parts, columns u32 [logit rows]: the lowest column of the largest
/// logit of the row, ARGMAX_NAN if it has a NaN. Grid (capacity of logit rows), 32 threads.
struct ArgmaxParams {
  u32 n;
  u32 n_parts;
};

}  // namespace hearth::backend::gpu
