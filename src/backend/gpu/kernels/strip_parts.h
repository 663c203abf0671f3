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

#define FLOAT_CHUNK 256  // values of a row of the matrix
#define FLOAT_CHUNKS 4   // that are on their way at once
// From chain to chain: the values of every fourth k lie together.
#define FLOAT_CHAIN (FLOAT_CHUNK / 4 + 4)
#define FLOAT_PASSES ((STRIP_WORK + 4 * STRIP_THREADS - 1) / (4 * STRIP_THREADS))

/// From chain to chain of a row of the input: not a multiple of all banks.
DEVICE_FN u32 float_x_chain(u32 n) {
  return n / 4 + 4;
}

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

/// Goes on with a chain over a chunk; the next steps are read while some are added.
DEVICE_FN f32 add_chain(SHARED(const u32) weights, SHARED(const f32) x, f32 sum) {
  u32x4 w = load4(weights);
  f32x4 v = load4(x);
  for (u32 step = 4; step <= FLOAT_CHUNK / 4; step += 4) {
    const u32 next = step % (FLOAT_CHUNK / 4);
    const u32x4 next_w = load4(weights + next);
    const f32x4 next_v = load4(x + next);
    sum = fma_f32(f32_of_bits(w.x), v.x, sum);
    sum = fma_f32(f32_of_bits(w.y), v.y, sum);
    sum = fma_f32(f32_of_bits(w.z), v.z, sum);
    sum = fma_f32(f32_of_bits(w.w), v.w, sum);
    w = next_w;
    v = next_v;
  }
  return sum;
}

/// Eight rows of floats times a row that is in `x` already: lane 4 r + c of the first simdgroup
/// returns chain c of row r.
DEVICE_FN f32 multiply_floats(PARAMS(StripParams) p, DEVICE(const f32) matrix, u32 first_row,
                              u32 n_out, SHARED(const f32) x, SHARED(u32) chunk, u32 thread_index,
                              THREAD(f32x4) loaded) {
  const u32 lane = thread_index % 32;
  SHARED(u32) to = chunk + (thread_index / 64 * 4 * FLOAT_CHAIN + thread_index % 64);
  f32 sum = 0.0f;
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
        to[0] = bits_of_f32(now[i].x);
        to[FLOAT_CHAIN] = bits_of_f32(now[i].y);
        to[2 * FLOAT_CHAIN] = bits_of_f32(now[i].z);
        to[3 * FLOAT_CHAIN] = bits_of_f32(now[i].w);
        group_barrier();
        if (thread_index < 32u) {
          sum = add_chain(chunk + lane * FLOAT_CHAIN, x + (lane % 4 * float_x_chain(p.n) + k / 4),
                          sum);
        }
      }
    }
  }
  return sum;
}

/// A row of the input, normed, to four chains.
DEVICE_FN void norm_floats(PARAMS(StripParams) p, DEVICE(const f32) x, DEVICE(const f32) norm,
                           SHARED(f32) chains, SHARED(f32) inverse, u32 thread_index) {
  group_barrier();  // the row before has been multiplied
  copy_values(x, p.n, chains, thread_index, STRIP_THREADS);
  group_barrier();
  f32 factor = 1.0f;
  if (p.has_norm != 0u) {
    if (thread_index < 32u) {
      const f32 sum = sum_lanes(add_squares(chains, p.n, thread_index, 0.0f));
      if (thread_index == 0u) {
        inverse[0] = 1.0f / sqrt_f32(sum / f32(p.n) + p.eps);
      }
    }
    group_barrier();
    factor = inverse[0];
  }
  f32x4 values[FLOAT_PASSES];
  UNROLL for (u32 pass = 0; pass < FLOAT_PASSES; ++pass) {
    const u32 i = 4 * (pass * STRIP_THREADS + thread_index);
    if (i < p.n) {
      values[pass] = load4(chains + i);
      if (p.has_norm != 0u) {
        values[pass] = values[pass] * factor * load4(norm + i);
      }
    }
  }
  group_barrier();  // all have been read
  UNROLL for (u32 pass = 0; pass < FLOAT_PASSES; ++pass) {
    const u32 step = pass * STRIP_THREADS + thread_index;
    if (4 * step < p.n) {
      chains[step] = values[pass].x;
      chains[float_x_chain(p.n) + step] = values[pass].y;
      chains[2 * float_x_chain(p.n) + step] = values[pass].z;
      chains[3 * float_x_chain(p.n) + step] = values[pass].w;
    }
  }
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
/// [first_step_row, end) of the step.
DEVICE_FN void multiply_float_rows(PARAMS(StripParams) p, u32 part, DEVICE(const f32) matrix,
                                   u32 first_row, u32 first_step_row, u32 end, DEVICE(const f32) x,
                                   DEVICE(const f32) norm, DEVICE(const f32) row_gate,
                                   DEVICE(const f32) residual, SHARED(f32) work, SHARED(u32) chunk,
                                   SHARED(f32) inverses, u32 thread_index, THREAD(f32x4) loaded,
                                   DEVICE(f32) y) {
  const u32 lane = thread_index % 32;
  const u32 n_out = p.n_out[part];
  for (u32 step_row = first_step_row; step_row < end; ++step_row) {
    norm_floats(p, x + u64(step_row) * p.n, norm, work, inverses, thread_index);
    f32 sum = multiply_floats(p, matrix, first_row, n_out, work, chunk, thread_index, loaded);
    if (thread_index < 32u) {
      sum = sum + shuffle_xor(sum, 1);
      sum = sum + shuffle_xor(sum, 2);
      const u32 output = first_row + lane / 4;
      const ResultPlace place = {0,
                                 0,
                                 0,
                                 step_row - first_step_row,
                                 u64(step_row) * n_out + output,
                                 lane % 4 == 0u && output < n_out};
      const StripEnd ending = strip_end(p, part, first_step_row, place, row_gate, residual);
      if (place.is_stored) {
        y[place.to] = strip_result(p, part, sum, ending);
      }
    }
  }
}

}  // namespace hearth::backend::gpu
