#pragma once
/// What kernels for several rows of the step have in common (kernels/strips.h): how rows are
/// normed, strips of floats, and what becomes of results.

#include "backend/gpu/kernels/strip_group.h"
#include "backend/gpu/kernels/strip_sums.h"
#include "backend/gpu/kernels/strips.h"

namespace hearth::backend::gpu {

/// 1 / sqrt(mean + eps) of rows: as many at a time as `work` holds go through it, a simdgroup adds
/// up each; of longer rows a part at a time.
DEVICE_FN void norm_rows(PARAMS(StripParams) p, DEVICE(const f32) x, u32 n_rows, SHARED(f32) work,
                         SHARED(f32) inverses, u32 thread_index) {
  const u32 simdgroup = thread_index / 32;
  const u32 at_once = n_rows == 1u ? 1u : max_u32(STRIP_WORK / p.n, 1u);
  for (u32 first = 0; first < n_rows; first += at_once) {
    const u32 n = min_u32(n_rows - first, at_once);
    f32 sum = 0.0f;
    for (u32 begin = 0; begin < p.n; begin += STRIP_WORK) {
      const u32 length = min_u32(p.n - begin, STRIP_WORK);
      group_barrier();  // what was there has been added up
      copy_values(x + (u64(first) * p.n + begin), n * length, work, thread_index, STRIP_THREADS);
      group_barrier();
      if (simdgroup < n) {
        sum = add_squares(work + simdgroup * length, length, thread_index % 32, sum);
      }
    }
    if (simdgroup < n) {
      sum = sum_lanes(sum);
      if (thread_index % 32 == 0u) {
        inverses[first + simdgroup] = 1.0f / sqrt_f32(sum / f32(p.n) + p.eps);
      }
    }
  }
  group_barrier();
}

#define ROW_ITEMS (STRIP_LOT_BLOCKS / STRIP_SIMDGROUPS)  // blocks of rows that a simdgroup has

/// What a simdgroup brings of all rows: blocks simdgroup, simdgroup + STRIP_SIMDGROUPS, ...
DEVICE_FN void load_row_lot(DEVICE(const f32) x, u32 n_items, u32 simdgroup, u32 lane,
                            THREAD(f32x4) values) {
  UNROLL for (u32 i = 0; i < ROW_ITEMS; ++i) {
    const u32 item = simdgroup + i * STRIP_SIMDGROUPS;
    if (item < n_items) {
      DEVICE(const f32) from = x + (256 * item + LANE_VALUES * lane);
      values[2 * i] = load4(from);
      values[2 * i + 1] = load4(from + 4);
    }
  }
}

/// 1 / sqrt(mean + eps) of rows, two of which a simdgroup adds up; load_row_lot has brought them to
/// the first cache.
DEVICE_FN void norm_row_lot(PARAMS(StripParams) p, DEVICE(const f32) x, u32 n_rows,
                            SHARED(f32) inverses, u32 simdgroup, u32 lane) {
  const u32 row = 2 * simdgroup + lane / N_LANES;
  if (2 * simdgroup < n_rows) {
    const u64 from = u64(min_u32(row, n_rows - 1u)) * p.n;
    const f32 sum = sum_lanes(add_squares_device(x + from, p.n, lane, 0.0f));
    if (lane % N_LANES == 0u && row < n_rows) {
      inverses[row] = 1.0f / sqrt_f32(sum / f32(p.n) + p.eps);
    }
  }
}

/// What load_row_lot brought, normed.
DEVICE_FN void apply_norm(DEVICE(const f32) norm, SHARED(const f32) inverses, u32 n_blocks,
                          u32 n_items, u32 simdgroup, u32 lane, THREAD(f32x4) values) {
  UNROLL for (u32 i = 0; i < ROW_ITEMS; ++i) {
    const u32 item = simdgroup + i * STRIP_SIMDGROUPS;
    if (item < n_items) {
      const f32 inverse = inverses[item / n_blocks];
      DEVICE(const f32) weights = norm + (256 * (item % n_blocks) + LANE_VALUES * lane);
      values[2 * i] = values[2 * i] * inverse * load4(weights);
      values[2 * i + 1] = values[2 * i + 1] * inverse * load4(weights + 4);
    }
  }
}

#define FLOAT_CHUNK 256                 // values of a row of the matrix
#define FLOAT_CHUNKS 4                  // that are on their way at once
#define FLOAT_STRIDE (FLOAT_CHUNK + 4)  // neighbouring rows meet different banks

/// The thread's four floats of each of FLOAT_CHUNKS chunks of eight rows from value `begin` on.
DEVICE_FN void load_chunks(PARAMS(StripParams) p, DEVICE(const f32) matrix, u32 first_row,
                           u32 n_out, u32 begin, u32 thread_index, THREAD(f32x4) loaded) {
  const u32 row = min_u32(first_row + thread_index / 64, n_out - 1u);
  UNROLL for (u32 i = 0; i < FLOAT_CHUNKS; ++i) {
    const u32 k = begin + i * FLOAT_CHUNK + 4 * (thread_index % 64);
    if (k < p.n) {
      loaded[i] = load4(matrix + (u64(row) * p.n + k));
    }
  }
}

/// Of what load_row_lot brought the block that begins at k, to chunks of rows.
DEVICE_FN void store_row_chunks(u32 n_blocks, u32 n_items, u32 k, u32 simdgroup, u32 lane,
                                THREAD(const f32x4) values, SHARED(f32) chunks) {
  UNROLL for (u32 i = 0; i < ROW_ITEMS; ++i) {
    const u32 item = simdgroup + i * STRIP_SIMDGROUPS;
    if (item < n_items && item % n_blocks == k / FLOAT_CHUNK) {
      SHARED(f32) to = chunks + (item / n_blocks * FLOAT_STRIDE + LANE_VALUES * lane);
      store4(to, values[2 * i]);
      store4(to + 4, values[2 * i + 1]);
    }
  }
}

/// Goes on with the four chains of a result over a chunk.
DEVICE_FN f32x4 add_chunk(SHARED(const u32) weights, SHARED(const f32) x, f32x4 sums) {
  for (u32 k = 0; k < FLOAT_CHUNK; k += 4) {
    const u32x4 w = load4(weights + k);
    const f32x4 v = load4(x + k);
    sums.x = fma_f32(f32_of_bits(w.x), v.x, sums.x);
    sums.y = fma_f32(f32_of_bits(w.y), v.y, sums.y);
    sums.z = fma_f32(f32_of_bits(w.z), v.z, sums.z);
    sums.w = fma_f32(f32_of_bits(w.w), v.w, sums.w);
  }
  return sums;
}

/// Eight rows of floats, whose first chunks are in `loaded`, times the rows that load_row_lot
/// brought: thread 4 o + r % 4 + 32 (r / 4) returns the four chains of matrix row o and row r.
DEVICE_FN f32x4 multiply_float_lot(PARAMS(StripParams) p, DEVICE(const f32) matrix, u32 first_row,
                                   u32 n_out, u32 n_rows, THREAD(const f32x4) values,
                                   SHARED(f32) rows, SHARED(u32) chunk, u32 thread_index,
                                   THREAD(f32x4) loaded) {
  const u32 lane = thread_index % 32;
  const u32 simdgroup = thread_index / 32;
  const u32 n_blocks = p.n / 256;
  const u32 n_items = n_rows * n_blocks;
  SHARED(u32) to = chunk + (thread_index / 64 * FLOAT_STRIDE + 4 * (thread_index % 64));
  f32x4 sums = make4(0, 0, 0, 0);
  for (u32 begin = 0; begin < p.n; begin += FLOAT_CHUNKS * FLOAT_CHUNK) {
    f32x4 now[FLOAT_CHUNKS];
    UNROLL for (u32 i = 0; i < FLOAT_CHUNKS; ++i) {
      now[i] = loaded[i];
    }
    const u32 next = begin + FLOAT_CHUNKS * FLOAT_CHUNK;
    load_chunks(p, matrix, first_row, n_out, next < p.n ? next : 0u, thread_index, loaded);
    UNROLL for (u32 i = 0; i < FLOAT_CHUNKS; ++i) {
      const u32 k = begin + i * FLOAT_CHUNK;
      if (k < p.n) {
        group_barrier();  // the chunk before has been added up
        const u32x4 bits = {bits_of_f32(now[i].x), bits_of_f32(now[i].y), bits_of_f32(now[i].z),
                            bits_of_f32(now[i].w)};
        store4(to, bits);
        store_row_chunks(n_blocks, n_items, k, simdgroup, lane, values, rows);
        group_barrier();
        if (4 * simdgroup < n_rows) {
          const u32 row = min_u32(4 * simdgroup + lane % 4, n_rows - 1u);
          sums = add_chunk(chunk + lane / 4 * FLOAT_STRIDE, rows + row * FLOAT_STRIDE, sums);
        }
      }
    }
  }
  return sums;
}

/// The result that a thread adds up.
struct ResultPlace {
  u32 in_round;  // strip
  u32 kind;      // 1: of the second matrix of a pair
  u32 row;       // of the strip
  u32 column;
  u64 to;  // in y
  bool is_stored;
};

/// Result i of n_results in a round that begins with strip `first`; threads without one repeat the
/// last.
DEVICE_FN ResultPlace result_place(PARAMS(StripParams) p, THREAD_REF(const StripGroup) group,
                                   u32 n_rows, u32 first, u32 i, u32 n_results,
                                   u32 first_step_row) {
  const u32 mine = min_u32(i, n_results - 1u);
  const bool is_pair = p.is_pair != 0u;
  const u32 place = mine / (is_pair ? 2 * STRIP_ROWS : STRIP_ROWS);
  ResultPlace result;
  result.row = mine % STRIP_ROWS;
  result.kind = is_pair ? mine / STRIP_ROWS % 2 : 0u;
  result.in_round = place / n_rows;
  result.column = place - result.in_round * n_rows;
  const u32 output = (first + result.in_round) * STRIP_ROWS + result.row;
  result.to = u64(first_step_row + result.column) * p.n_out[group.part] + output;
  result.is_stored = i < n_results && result.kind == 0u && output < p.n_out[group.part];
  return result;
}

/// What the results wait for: asked for early.
struct StripEnd {
  f32 row_gate;
  f32 residual;
};

DEVICE_FN StripEnd strip_end(PARAMS(StripParams) p, u32 part, u32 first_step_row,
                             THREAD_REF(const ResultPlace) place, DEVICE(const f32) row_gate,
                             DEVICE(const f32) residual) {
  StripEnd end = {0.0f, 0.0f};
  if (place.is_stored && p.has_row_gate != 0u) {
    end.row_gate = row_gate[first_step_row + place.column];
  }
  if (place.is_stored && p.has_residual != 0u && part == 0u) {
    end.residual = residual[place.to];
  }
  return end;
}

/// What is stored for a product.
DEVICE_FN f32 strip_result(PARAMS(StripParams) p, u32 part, f32 product, StripEnd end) {
  f32 result = product;
  if (p.has_row_gate != 0u) {
    result = result * activate_f32(p.row_activation, end.row_gate);
  }
  return p.has_residual != 0u && part == 0u ? result + end.residual : result;
}

/// Eight rows of floats from `first_row` on, whose first chunks are in `loaded`, times rows
/// [first_step_row, end) of the step, at most STRIP_LOT_BLOCKS blocks of them.
DEVICE_FN void multiply_float_rows(PARAMS(StripParams) p, u32 part, DEVICE(const f32) matrix,
                                   u32 first_row, u32 first_step_row, u32 end, DEVICE(const f32) x,
                                   DEVICE(const f32) norm, DEVICE(const f32) row_gate,
                                   DEVICE(const f32) residual, SHARED(f32) work, SHARED(u32) chunk,
                                   SHARED(f32) inverses, u32 thread_index, THREAD(f32x4) loaded,
                                   DEVICE(f32) y) {
  if (first_step_row >= end) {
    return;
  }
  const u32 lane = thread_index % 32;
  const u32 simdgroup = thread_index / 32;
  const u32 n_out = p.n_out[part];
  const u32 n_rows = end - first_step_row;
  const u32 n_blocks = p.n / 256;
  DEVICE(const f32) x_rows = x + u64(first_step_row) * p.n;
  f32x4 values[2 * ROW_ITEMS];
  load_row_lot(x_rows, n_rows * n_blocks, simdgroup, lane, values);
  if (p.has_norm != 0u) {
    norm_row_lot(p, x_rows, n_rows, inverses, simdgroup, lane);
    group_barrier();
    apply_norm(norm, inverses, n_blocks, n_rows * n_blocks, simdgroup, lane, values);
  }
  const f32x4 sums = multiply_float_lot(p, matrix, first_row, n_out, n_rows, values, work, chunk,
                                        thread_index, loaded);
  const u32 row = 4 * simdgroup + lane % 4;
  const u32 output = first_row + lane / 4;
  if (row < n_rows && output < n_out) {
    const u64 to = u64(first_step_row + row) * n_out + output;
    const ResultPlace place = {0, 0, 0, row, to, true};
    const StripEnd ending = strip_end(p, part, first_step_row, place, row_gate, residual);
    y[to] = strip_result(p, part, (sums.x + sums.y) + (sums.z + sums.w), ending);
  }
}

}  // namespace hearth::backend::gpu
