#pragma once
/// Products of few rows with what makes their input, in one launch: a threadgroup norms and
/// quantizes the rows for itself (kernels/input.h), which costs less than a launch, while its first
/// weights are on their way. The same results as quantize_input and product_<type>, which take all
/// other cases.

#include "backend/gpu/dialect/scalars.h"

namespace hearth::backend::gpu {

#define STRIP_THREADS 512
#define STRIP_SIMDGROUPS (STRIP_THREADS / 32)
#define STRIP_PARTS 4
#define STRIP_MAX_ROWS 8      // of the step that a threadgroup multiplies
#define STRIP_MAX_BLOCKS 56   // of 256 values of a row,
#define STRIP_LOT_BLOCKS 64   // of all rows of a threadgroup of strip_projection,
#define STRIP_FEW_ROWS 4      // of which there are so many beside other matrices than of floats
#define STRIP_POOL 7424       // floats of its codes and of what it puts aside,
#define FEW_PASSED_WORDS 512  // some of them for what simdgroups pass on
#define FEW_TERMS (5 * 32)    // and so many for each tile
/// Of n_blocks tiles of a chain those of each of 1 << shift simdgroups.
#define CHAIN_TILES(n_blocks, shift) (((n_blocks) + (1u << (shift)) - 1u) >> (shift))

// Blocks of codes in shared memory: words 2 q and 2 q + 1 of both halves of 64 values lie together.
// After the blocks of a row a gap, so that rows meet different banks.
#define STRIP_BLOCK_WORDS 64
#define STRIP_ROW_GAP 16
/// The sums of 16 codes each, as low six bits and the rest: bytes, first all low ones.
#define STRIP_DIGIT_BYTES 32

// StripParams::type
#define STRIP_Q4_K 0
#define STRIP_Q5_K 1
#define STRIP_Q6_K 2
#define STRIP_F32 3
#define STRIP_Q8_0 4
#define STRIP_Q4_0 5
#define STRIP_IQ4_NL 6
#define STRIP_MXFP4 7
/// Whether it is of blocks of 32 weights (kernels/small_tile.h).
#define STRIP_IS_SMALL(type) ((type) >= STRIP_Q8_0)

// Rows of a matrix in a strip.
#define STRIP_ROWS 16
#define STRIP_FLOAT_ROWS 8

#define STRIP_TAPS 4  // of a convolution behind part 0

#define STRIP_WORK 3072  // floats of values that norms and sums of floats pass through

/// Floats of what a tile says of one row: of four numbers for each of 16 results, or eight sums and
/// as many scales in half the space.
#define ROW_TERMS 64
#define ROW_WORK (STRIP_MAX_BLOCKS * ROW_TERMS)  // of strip_row, in place of STRIP_WORK
#define SMALL_TERMS 192
#define STRIP_ROW_TERMS(type) (STRIP_IS_SMALL(type) ? SMALL_TERMS : ROW_TERMS)

/// Types with blocks of 32 weights, several rows of the step: chains pass from one simdgroup to the
/// next through shared memory, of each tile but the first of a row twice so many floats; and as
/// many as any rows within STRIP_MAX_ROWS and STRIP_MAX_BLOCKS need.
#define SMALL_LINK_WORK 3584
#define SMALL_LINK_FLOATS(n_rows) (32 * (((n_rows) + 1) / 2))

/// strip_projection and strip_projection_small, for steps of several rows, strip_row and
/// strip_row_small, for steps of one: for types with blocks of 256 weights, and for those with
/// blocks of 32; each also for floats. Up to four matrices multiply one input, normed as a whole
/// row with has_norm; with is_pair the first two, of one type, are gate and up, and y0 =
/// activation(gate) * up. A strip is 16 rows of a matrix, of a pair 16 of both, of floats 8.
/// Buffers: counts, x f32 [rows, n], norm f32 [n], row_gate f32 [rows], residual f32 [rows, n_out],
/// weight0 ... weight3 (tiles, or floats), y0 ... y3 f32 [rows, n_out]; for one row also
/// conv_weight, positions, state_before, state_after and rings as of causal_conv_f32, of which
/// absent ones are bound as y1 is. For an absent buffer any other may be bound
/// that is only read, or for y1 ... y3, that nobody uses.
///
/// Threadgroup g.x takes group_strips of the strips of the first part with g.x < group_end, after
/// those of the threadgroups before it; of floats that is one. Grid (group_end of the last part,
/// ceil(capacity / group_rows)). n is a multiple of 256; a matrix has less than 4 GiB. For r =
/// group_rows: n / 256 <= STRIP_MAX_BLOCKS; with blocks of 256 weights r <= STRIP_FEW_ROWS and n /
/// 256 * r <= STRIP_LOT_BLOCKS; with blocks of 32, and of floats alone, r <= STRIP_MAX_ROWS and n /
/// 256 * r <= STRIP_MAX_BLOCKS, of floats STRIP_LOT_BLOCKS. For one row ROW_TERMS times n / 256,
/// twice that for a pair, times round_strips <= ROW_WORK. For several with blocks of 256 weights
/// STRIP_POOL has room for codes, FEW_PASSED_WORDS, and FEW_TERMS for each tile of the chains of a
/// round that another than the first of 1 << chain_shift simdgroups has.
struct StripParams {
  u32 axis;  // whose rows: 0 of the step, 1 of its logits
  u32 n;
  u32 has_norm;
  f32 eps;
  u32 n_out[STRIP_PARTS];
  u32 type[STRIP_PARTS];
  u32 group_end[STRIP_PARTS];
  u32 group_strips[STRIP_PARTS];
  u32 group_rows;    // of the step
  u32 round_strips;  // for one row: whose terms fit into work
  u32 is_pair;
  u32 activation;  // of the pair, graph::ActivationKind
  u32 has_row_gate;
  u32 row_activation;
  u32 has_residual;              // for y0
  u32 has_conv;                  // one row alone: y0 goes through a convolution of STRIP_TAPS
  u64 slot_stride;               // of its rings, CausalConvParams
  u32 chain_shift[STRIP_PARTS];  // several rows: 1 << it simdgroups share a chain
};

}  // namespace hearth::backend::gpu
