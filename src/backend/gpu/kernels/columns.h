#pragma once
/// Products of some tens of rows (several sequences at once) with matrices in tiles
/// (kernels/weight_tiles.h), whose input quantize_input has prepared. The same results as
/// product_<type>.

#include "backend/gpu/kernels/strips.h"

namespace hearth::backend::gpu {

#define COLUMN_PARTS 4
#define COLUMN_GROUP 8       // columns of an integer tile,
#define COLUMN_MAX_GROUPS 2  // of which a simdgroup multiplies so many
#define COLUMN_MAX_COLUMNS (COLUMN_GROUP * COLUMN_MAX_GROUPS)
#define COLUMN_MAX_THREADS 256

/// column_projection. A column is a row of x.
///
/// Up to four matrices multiply one input; with is_pair the first two, of one type, are gate and
/// up, and y0 = activation(gate) * up. A strip is 16 rows of a matrix, of a pair 16 of both. Of the
/// strips of a threadgroup, group_strips, a simdgroup takes simdgroup_strips neighbours with one
/// chunk of chunk_groups * COLUMN_GROUP columns, so a threadgroup has n_chunks * group_strips /
/// simdgroup_strips simdgroups. Threadgroup g.x has strips of the first part with g.x < group_end,
/// after those of the threadgroups before it.
///
/// One matrix for all rows (n_used = 0): y rows and x rows are rows of the step. Grid
/// (group_end of the last part), and n_chunks * chunk_groups * COLUMN_GROUP >= capacity.
/// Experts (n_used > 0), as in ProductParams: an entry is a y row, and with has_x_per_slot an x
/// row. One part, or one pair; n_chunks is 1. Grid (group_end, tiles of expert_rows of at most
/// chunk_groups * COLUMN_GROUP entries).
///
/// Buffers: counts, codes, scales, sums (of quantize_input with blocks of 256), entries and tiles
/// (of expert_rows), row_gate f32 [rows], residual f32 [rows, n_out], weight0 ... weight3, y0 ...
/// y3 f32 [y rows, n_out]. gate and up may be one buffer. For an absent buffer any other may be
/// bound that is only read, or for y1 ... y3, that nobody uses.
struct ColumnParams {
  u32 axis;  // whose rows: 0 of the step, 1 of its logits
  u32 n;     // a multiple of 256
  u32 n_out[COLUMN_PARTS];
  u32 type[COLUMN_PARTS];       // STRIP_Q4_K ...
  u32 group_end[COLUMN_PARTS];  // threadgroups
  u32 group_strips;
  u32 simdgroup_strips;
  u32 n_chunks;
  u32 chunk_groups;  // at most COLUMN_MAX_GROUPS
  u32 is_pair;
  u32 activation;  // of the pair, graph::ActivationKind
  u32 has_row_gate;
  u32 row_activation;
  u32 has_residual;  // for y0
  u32 n_used;
  u32 expert_rows;  // a multiple of TILE_ROWS, as first_row
  u32 first_row[2];
  u32 has_x_per_slot;
};

}  // namespace hearth::backend::gpu
