#pragma once
/// Products of some tens of rows (several sequences at once) with matrices in tiles
/// (kernels/weight_tiles.h) and of floats, and what prepares their input. The same results as
/// quantize_input, float_input and product_<type>.

#include "backend/gpu/kernels/input.h"
#include "backend/gpu/kernels/strips.h"

namespace hearth::backend::gpu {

#define COLUMN_PARTS 4
#define COLUMN_GROUP 8       // columns of an integer tile,
#define COLUMN_MAX_GROUPS 2  // of which a simdgroup multiplies so many
#define COLUMN_MAX_COLUMNS (COLUMN_GROUP * COLUMN_MAX_GROUPS)
#define COLUMN_MAX_THREADS 256

#define COLUMN_WORK 5280  // floats of shared memory
/// Of them, of what a tile of weights says of groups of columns, in column_split_k.
#define SPLIT_UNIT_WORDS(groups) (264 * (groups) + 32)

#define COLUMN_FLOAT_ROWS 8     // of a matrix of floats, that a threadgroup multiplies,
#define COLUMN_FLOAT_COLUMNS 4  // with so many columns for each of its simdgroups

/// column_input: x -> [norm] [* activation(gate)] as quantize_input does it, in blocks of 256,
/// which divides n, and with has_floats as float_input does it. Threadgroups of INPUT_THREADS, grid
/// (ceil(n / INPUT_GROUP_VALUES), capacity). Buffers:
///   0 counts, 1 x, 2 norm, 3 gate   as of quantize_input
///   4 codes u32 [rows, n / 256, STRIP_BLOCK_WORDS]   in the order of kernels/strip_tile.h
///   5 digits u8 [rows, n / 256, STRIP_DIGIT_BYTES]   of the sums of 16 codes: of four the low six
///                                                    bits, then the rest of these
///   6 scales f32 [rows, n / 256]
///   7 y f32 [rows, n]                                any that nobody uses unless has_floats
struct ColumnInputParams {
  InputParams input;
  u32 has_floats;
};

/// column_projection and column_split_k. A column is a row of x.
///
/// Up to four matrices multiply one input; with is_pair the first two, of one type, are gate and
/// up, and y0 = activation(gate) * up. A strip is 16 rows of a matrix, of a pair 16 of both. Of
/// floats, COLUMN_FLOAT_ROWS of the matrix have threadgroups for COLUMN_FLOAT_COLUMNS columns a
/// simdgroup, float_chunks of them, and four simdgroups or more. Threadgroup g.x has what comes
/// after the threadgroups before it in the first part with g.x < group_end.
///
/// column_projection: of the strips of a threadgroup, group_strips, a simdgroup takes
/// simdgroup_strips neighbours with one chunk of chunk_groups * COLUMN_GROUP columns, so a
/// threadgroup has n_chunks * group_strips / simdgroup_strips simdgroups. One matrix for all rows
/// (n_used = 0): y rows and x rows are rows of the step. Grid (group_end of the last part), and
/// n_chunks * chunk_groups * COLUMN_GROUP >= capacity. Experts (n_used > 0), as in ProductParams:
/// an entry is a y row, and with has_x_per_slot an x row. One part, or one pair; n_chunks is 1.
/// Grid (group_end, tiles of expert_rows of at most chunk_groups * COLUMN_GROUP entries).
///
/// column_split_k: without experts. Four or more simdgroups share the blocks of a strip, of a pair
/// those of the gate and then those of the other, for one chunk of columns. At most round_units
/// blocks at a time, for which SPLIT_UNIT_WORDS(chunk_groups) * round_units <= COLUMN_WORK. Grid
/// (group_end of the last part, n_chunks), group_strips is 1.
///
/// Buffers: counts, codes, digits u32, scales, floats (of column_input), entries and tiles (of
/// expert_rows; of column_projection alone), row_gate f32 [rows], residual f32 [rows, n_out], slots
/// f32 [rows, n_slots, n_out] and routing f32 [rows, 2 n_slots], weight0 ... weight3 (tiles, or
/// floats), y0 ... y3 f32 [y rows, n_out]. gate and up may be one buffer. For an absent buffer any
/// other may be bound that is only read, or for y1 ... y3, that nobody uses.
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
  u32 float_chunks;
  u32 round_units;  // 0 of column_projection
  u32 is_pair;
  u32 activation;  // of the pair, graph::ActivationKind
  u32 has_row_gate;
  u32 row_activation;
  u32 has_residual;  // for y0
  u32 n_slots;       // added to y0, too, first, as expert_sum_f32 adds up what experts said; then
                     // it is the only one
  u32 n_used;
  u32 expert_rows;  // a multiple of TILE_ROWS, as first_row
  u32 first_row[2];
  u32 has_x_per_slot;
};

}  // namespace hearth::backend::gpu
