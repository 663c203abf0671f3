#pragma once
/// What kernels for several rows of the step have in common (kernels/strips.h): how rows are
/// normed, strips of floats, and what becomes of results.

#include "backend/gpu/kernels/float_chain.h"
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

/// add_squares of a row of n values, a multiple of 256: what comes next is read while some is
/// added.
DEVICE_FN f32 add_row_squares(DEVICE(const f32) row, u32 n, u32 lane) {
  DEVICE(const f32) mine = row + lane % N_LANES;
  f32 values[N_LANES];
  UNROLL for (u32 i = 0; i < N_LANES; ++i) {
    values[i] = mine[i * N_LANES];
  }
  f32 partial = 0.0f;
  KEEP_LOOP for (u32 begin = 256; begin <= n; begin += 256) {
    DEVICE(const f32) ahead = mine + (begin < n ? begin : 0u);
    f32 next[N_LANES];
    UNROLL for (u32 i = 0; i < N_LANES; ++i) {
      next[i] = ahead[i * N_LANES];
    }
    UNROLL for (u32 i = 0; i < N_LANES; ++i) {
      partial = fma_f32(values[i], values[i], partial);
      values[i] = next[i];
    }
  }
  return partial;
}

/// 1 / sqrt(mean + eps) of rows, two of which a simdgroup adds up; load_row_lot has brought them to
/// the first cache.
DEVICE_FN void norm_row_lot(PARAMS(StripParams) p, DEVICE(const f32) x, u32 n_rows,
                            SHARED(f32) inverses, u32 simdgroup, u32 lane) {
  const u32 row = 2 * simdgroup + lane / N_LANES;
  if (2 * simdgroup < n_rows) {
    const u64 from = u64(min_u32(row, n_rows - 1u)) * p.n;
    const f32 sum = sum_lanes(add_row_squares(x + from, p.n, lane));
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

#define FLOAT_CHUNK 256                    // values of a row of the matrix, and of the rows
#define FLOAT_LOADS 8                      // chunks that are on their way at once
#define FLOAT_CHAIN (FLOAT_CHUNK / 4 + 4)  // chains of a chunk begin at different banks
#define FLOAT_ROW (4 * FLOAT_CHAIN)        // of a chunk
#define FLOAT_LOT_ROWS 4                   // of the step at once
#define FLOAT_STEPS 2                      // fours of a chain that are read at once
/// Two chunks of eight rows of the matrix, then of the rows of the step.
#define FLOAT_WEIGHTS (FLOAT_ROW * STRIP_FLOAT_ROWS)
#define FLOAT_POOL (2 * (FLOAT_WEIGHTS + FLOAT_LOT_ROWS * FLOAT_ROW))

/// The thread's four floats of each of FLOAT_LOADS chunks of eight rows from value `begin` on.
DEVICE_FN void load_float_rows(PARAMS(StripParams) p, DEVICE(const f32) matrix, u32 first_row,
                               u32 n_out, u32 begin, u32 thread_index, THREAD(f32x4) loaded) {
  const u32 row = min_u32(first_row + thread_index / 64, n_out - 1u);
  UNROLL for (u32 i = 0; i < FLOAT_LOADS; ++i) {
    const u32 k = begin + i * FLOAT_CHUNK + 4 * (thread_index % 64);
    if (k < p.n) {
      loaded[i] = load4(matrix + (u64(row) * p.n + k));
    }
  }
}

/// Where load_row_lot's items of a simdgroup go: in which chunks, and from which float on.
struct FloatPlaces {
  u32 chunks[ROW_ITEMS];
  u32 rows[ROW_ITEMS];
};

DEVICE_FN FloatPlaces float_places(u32 n_blocks, u32 n_items, u32 simdgroup) {
  FloatPlaces places;
  UNROLL for (u32 i = 0; i < ROW_ITEMS; ++i) {
    const u32 item = simdgroup + i * STRIP_SIMDGROUPS;
    const u32 row = item / n_blocks;
    places.chunks[i] = item < n_items ? item - row * n_blocks : ~0u;
    places.rows[i] = 2 * FLOAT_WEIGHTS + row * FLOAT_ROW;
  }
  return places;
}

/// A chunk, its chains apart: of eight rows, of which the thread has four values, and of the rows
/// that load_row_lot brought. Chunks take turns in both halves of `pool`.
DEVICE_FN void store_float_chunk(u32 chunk, u32 half_of, THREAD_REF(const FloatPlaces) places,
                                 u32 thread_index, f32x4 loaded, THREAD(const f32x4) values,
                                 SHARED(f32) pool) {
  SHARED(f32)
  to = pool + (half_of * FLOAT_WEIGHTS + thread_index / 64 * FLOAT_ROW + thread_index % 64);
  to[0] = loaded.x;
  to[FLOAT_CHAIN] = loaded.y;
  to[2 * FLOAT_CHAIN] = loaded.z;
  to[3 * FLOAT_CHAIN] = loaded.w;
  UNROLL for (u32 i = 0; i < ROW_ITEMS; ++i) {
    if (places.chunks[i] == chunk) {
      SHARED(f32)
      row =
          pool + (places.rows[i] + half_of * FLOAT_LOT_ROWS * FLOAT_ROW + 2 * (thread_index % 32));
      store2(row, values[2 * i].x, values[2 * i + 1].x);
      store2(row + FLOAT_CHAIN, values[2 * i].y, values[2 * i + 1].y);
      store2(row + 2 * FLOAT_CHAIN, values[2 * i].z, values[2 * i + 1].z);
      store2(row + 3 * FLOAT_CHAIN, values[2 * i].w, values[2 * i + 1].w);
    }
  }
}

/// Eight rows of floats, whose first chunks are in `loaded`, times the rows that load_row_lot
/// brought: simdgroup r has row r, lane 4 o + c returns chain c of matrix row o.
DEVICE_FN f32 multiply_float_lot(PARAMS(StripParams) p, DEVICE(const f32) matrix, u32 first_row,
                                 u32 n_out, u32 n_rows, THREAD(const f32x4) values,
                                 SHARED(f32) pool, u32 thread_index, THREAD(f32x4) loaded) {
  const u32 lane = thread_index % 32;
  const u32 simdgroup = thread_index / 32;
  const u32 n_chunks = p.n / FLOAT_CHUNK;
  const FloatPlaces places = float_places(n_chunks, n_rows * n_chunks, simdgroup);
  SHARED(const f32) weights = pool + lane * FLOAT_CHAIN;
  SHARED(const f32)
  row = pool + (2 * FLOAT_WEIGHTS + simdgroup * FLOAT_ROW + lane % 4 * FLOAT_CHAIN);
  f32 sum = 0.0f;
  store_float_chunk(0, 0, places, thread_index, loaded[0], values, pool);
  KEEP_LOOP for (u32 first = 0; first < n_chunks; first += 2) {
    UNROLL for (u32 i = 0; i < 2; ++i) {
      const u32 next = first + i + 1;
      group_barrier();  // the chunk is there, the one before has been added up
      if (i == 1u) {
        UNROLL for (u32 l = 0; l + 2 < FLOAT_LOADS; ++l) {
          loaded[l] = loaded[l + 2];
        }
        if (next % FLOAT_LOADS == 0u && next < n_chunks) {
          load_float_rows(p, matrix, first_row, n_out, next * FLOAT_CHUNK, thread_index, loaded);
        }
      }
      if (next < n_chunks) {
        store_float_chunk(next, 1 - i, places, thread_index, loaded[1 - i], values, pool);
      }
      if (simdgroup < n_rows && next <= n_chunks) {
        sum = add_float_chain(weights + i * FLOAT_WEIGHTS, row + i * FLOAT_LOT_ROWS * FLOAT_ROW,
                              FLOAT_CHUNK / 4, FLOAT_STEPS, sum);
      }
    }
  }
  return sum;
}

/// What a result waits for: asked for early.
struct StripEnd {
  f32 row_gate;
  f32 residual;
};

/// Of the result for row `row` of the step that goes to `to`.
DEVICE_FN StripEnd strip_end(PARAMS(StripParams) p, u32 part, u32 row, u64 to,
                             DEVICE(const f32) row_gate, DEVICE(const f32) residual) {
  StripEnd end = {0.0f, 0.0f};
  if (p.has_row_gate != 0u) {
    end.row_gate = row_gate[row];
  }
  if (p.has_residual != 0u && part == 0u) {
    end.residual = residual[to];
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
/// [first_step_row, end) of the step, at most STRIP_LOT_BLOCKS blocks of them; `pool` has
/// FLOAT_POOL floats.
DEVICE_FN void multiply_float_rows(PARAMS(StripParams) p, u32 part, DEVICE(const f32) matrix,
                                   u32 first_row, u32 first_step_row, u32 end, DEVICE(const f32) x,
                                   DEVICE(const f32) norm, DEVICE(const f32) row_gate,
                                   DEVICE(const f32) residual, SHARED(f32) pool,
                                   SHARED(f32) inverses, u32 thread_index, THREAD(f32x4) loaded,
                                   DEVICE(f32) y) {
  const u32 lane = thread_index % 32;
  const u32 simdgroup = thread_index / 32;
  const u32 n_out = p.n_out[part];
  const u32 n_blocks = p.n / 256;
  KEEP_LOOP for (u32 first = first_step_row; first < end; first += FLOAT_LOT_ROWS) {
    const u32 n_rows = min_u32(end - first, FLOAT_LOT_ROWS);
    DEVICE(const f32) x_rows = x + u64(first) * p.n;
    f32x4 values[2 * ROW_ITEMS];
    load_row_lot(x_rows, n_rows * n_blocks, simdgroup, lane, values);
    if (first != first_step_row) {
      load_float_rows(p, matrix, first_row, n_out, 0, thread_index, loaded);
      group_barrier();  // the rows before have been added up
    }
    if (p.has_norm != 0u) {
      norm_row_lot(p, x_rows, n_rows, inverses, simdgroup, lane);
      group_barrier();
      apply_norm(norm, inverses, n_blocks, n_rows * n_blocks, simdgroup, lane, values);
    }
    f32 sum =
        multiply_float_lot(p, matrix, first_row, n_out, n_rows, values, pool, thread_index, loaded);
    if (simdgroup < n_rows) {
      sum = sum + shuffle_xor(sum, 1);
      sum = sum + shuffle_xor(sum, 2);
      const u32 output = first_row + lane / 4;
      if (lane % 4 == 0u && output < n_out) {
        const u32 row = first + simdgroup;
        const u64 to = u64(row) * n_out + output;
        y[to] = strip_result(p, part, sum, strip_end(p, part, row, to, row_gate, residual));
      }
    }
  }
}

}  // namespace hearth::backend::gpu
