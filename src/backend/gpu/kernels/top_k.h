#pragma once
/// The k largest of each row of logits, found without taking them to the host (graph/ops/top_k.h).

#include "backend/gpu/dialect/scalars.h"

namespace hearth::backend::gpu {

#define TOP_K_THREADS 1024
#define TOP_K_PART (8 * TOP_K_THREADS)  // entries of which a threadgroup keeps k

/// top_k_f32: each part of a row is thinned out to its k largest, in order of columns; started
/// again on what it wrote, until a single part is left. Buffers: counts, x: [rows, n] values, or
/// with `are_pairs` [rows, n, 2] columns, as floats, and values; y [rows, n_parts, k, 2]. A last
/// part of fewer than k entries gives what has column -1 and comes behind all values.
/// Grid (n_parts, capacity of rows) with n_parts = ceil(n_entries / TOP_K_PART).
struct TopKParams {
  u32 n;
  u32 axis;       // of rows
  u32 n_entries;  // of the n
  u32 k;          // up to TOP_K_PART
  u32 n_parts;
  u32 are_pairs;
};

}  // namespace hearth::backend::gpu
