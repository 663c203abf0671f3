// Few rows times a matrix of floats. The canonical sum of a result is four chains by k mod 4: a
// simdgroup has a row of the step, and four lanes of it each of eight rows of the matrix, which
// pass through shared memory 1 KiB at a time. Bound by the latency of the chains.

#include "backend/gpu/kernels/projection.h"

#include "backend/gpu/kernels/input_values.h"

namespace hearth::backend::gpu {

#define FLOAT_CHUNK 256                 // values of a row of the matrix
#define FLOAT_STRIDE (FLOAT_CHUNK + 4)  // lanes of different rows meet different banks
#define FLOAT_LOADS 2                   // of 16 bytes, by each thread
#define FLOAT_STEPS 16                  // of a chain whose loads do not wait for each other
#define FLOAT_PASSES (PROJECTION_FLOATS / (8 * PROJECTION_THREADS))  // of eight values a thread

/// The thread's words of a chunk of eight rows, from value `begin` on; zeroes behind the row's end.
DEVICE_FN void load_floats(DEVICE(const f32) matrix, u32 first_row, u32 n_rows, u32 n, u32 begin,
                           u32 thread_index, THREAD(f32x4) loaded) {
  UNROLL for (u32 i = 0; i < FLOAT_LOADS; ++i) {
    const u32 place = (i * PROJECTION_THREADS + thread_index) * 4;
    const u32 row = min_u32(first_row + place / FLOAT_CHUNK, n_rows - 1u);
    const u32 k = begin + place % FLOAT_CHUNK;
    loaded[i] = make4(0.0f, 0.0f, 0.0f, 0.0f);
    if (k < n) {
      loaded[i] = load4(matrix + u64(row) * n + k);
    }
  }
}

/// The row in shared memory becomes its norm times `norm`, of which the thread has the values for
/// those eight that it multiplies in each pass.
DEVICE_FN void norm_floats(PARAMS(InputParams) p, THREAD(const f32x4) norm, SHARED(f32) row,
                           SHARED(f32) inverse, u32 thread_index) {
  group_barrier();  // the row is there
  if (thread_index < 32u) {
    const f32 sum = sum_lanes(add_squares(row, p.n, thread_index, 0.0f));
    if (thread_index == 0u) {
      inverse[0] = 1.0f / sqrt_f32(sum / f32(p.n) + p.eps);
    }
  }
  group_barrier();
  const f32 factor = inverse[0];
  UNROLL for (u32 pass = 0; pass < FLOAT_PASSES; ++pass) {
    const u32 i = 8 * (pass * PROJECTION_THREADS + thread_index);
    if (i < p.n) {
      store4(row + i, load4(row + i) * factor * norm[2 * pass]);
      store4(row + i + 4, load4(row + i + 4) * factor * norm[2 * pass + 1]);
    }
  }
}

/// Those values.
DEVICE_FN void load_norm(DEVICE(const f32) norm, u32 n, u32 thread_index, THREAD(f32x4) values) {
  UNROLL for (u32 pass = 0; pass < FLOAT_PASSES; ++pass) {
    const u32 i = 8 * (pass * PROJECTION_THREADS + thread_index);
    if (i < n) {
      values[2 * pass] = load4(norm + i);
      values[2 * pass + 1] = load4(norm + i + 4);
    }
  }
}

/// Goes on with a chain over n values, a multiple of 4: every fourth of both. The next steps are
/// loaded while some are added.
DEVICE_FN f32 add_chain(SHARED(const f32) weights, SHARED(const f32) x, u32 n, f32 sum) {
  f32 w[FLOAT_STEPS];
  f32 v[FLOAT_STEPS];
  const u32 n_steps = n / 4;
  const u32 n_whole = n_steps / FLOAT_STEPS;
  UNROLL for (u32 i = 0; i < FLOAT_STEPS; ++i) {
    w[i] = n_whole > 0u ? weights[4 * i] : 0.0f;
    v[i] = n_whole > 0u ? x[4 * i] : 0.0f;
  }
  for (u32 whole = 0; whole < n_whole; ++whole) {
    f32 next_w[FLOAT_STEPS];
    f32 next_v[FLOAT_STEPS];
    const u32 next = whole + 1u < n_whole ? 4u * (whole + 1u) * FLOAT_STEPS : 0u;
    UNROLL for (u32 i = 0; i < FLOAT_STEPS; ++i) {
      next_w[i] = weights[next + 4 * i];
      next_v[i] = x[next + 4 * i];
    }
    UNROLL for (u32 i = 0; i < FLOAT_STEPS; ++i) {
      sum = fma_f32(w[i], v[i], sum);
      w[i] = next_w[i];
      v[i] = next_v[i];
    }
  }
  for (u32 step = n_whole * FLOAT_STEPS; step < n_steps; ++step) {
    sum = fma_f32(weights[4 * step], x[4 * step], sum);
  }
  return sum;
}

KERNEL(projection_f32, PROJECTION_THREADS, ProjectionParams, BUFFER(0, const u32, counts),
       BUFFER(1, const f32, x), BUFFER(2, const f32, norm), BUFFER(3, const f32, row_gate),
       BUFFER(4, const f32, residual), BUFFER(5, const f32, weight0), BUFFER(6, const f32, weight1),
       BUFFER(7, const f32, weight2), BUFFER(8, f32, y0), BUFFER(9, f32, y1), BUFFER(10, f32, y2)) {
  SHARED_ARRAY(f32, x_rows, PROJECTION_FLOATS);
  SHARED_ARRAY(f32, matrix_rows, PROJECTION_OUTPUTS * FLOAT_STRIDE);
  SHARED_ARRAY(f32, inverse, 1);
  const u32 first_step_row = k_group.z * p.group_rows;
  const u32 n_step_rows = counts[p.input.axis];
  if (first_step_row >= n_step_rows) {
    return;
  }
  const u32 n_rows = min_u32(n_step_rows - first_step_row, p.group_rows);
  const u32 n = p.input.n;
  // Eight rows of one of the matrices.
  const u32 groups0 = (p.n_out[0] + PROJECTION_OUTPUTS - 1u) / PROJECTION_OUTPUTS;
  const u32 groups1 = (p.n_out[1] + PROJECTION_OUTPUTS - 1u) / PROJECTION_OUTPUTS;
  const u32 part = k_group.x < groups0 ? 0u : (k_group.x < groups0 + groups1 ? 1u : 2u);
  const u32 skipped = part == 0u ? 0u : (part == 1u ? groups0 : groups0 + groups1);
  const u32 first_output = (k_group.x - skipped) * PROJECTION_OUTPUTS;
  const u32 n_out = p.n_out[part];
  DEVICE(const f32) matrix = part == 0u ? weight0 : (part == 1u ? weight1 : weight2);
  // All eight rows are on their way while the input is prepared.
  for (u32 i = 32 * k_thread.x; i < PROJECTION_OUTPUTS * n; i += 32 * PROJECTION_THREADS) {
    prefetch(matrix + u64(min_u32(first_output + i / n, n_out - 1u)) * n + i % n);
  }
  f32x4 norm_values[2 * FLOAT_PASSES];
  if (p.input.norm_run != 0u) {
    load_norm(norm, n, k_thread.x, norm_values);
  }
  f32x4 loaded[FLOAT_LOADS];
  load_floats(matrix, first_output, n_out, n, 0, k_thread.x, loaded);

  for (u32 row = 0; row < n_rows; ++row) {
    SHARED(f32) x_row = x_rows + row * n;
    copy_values(x + u64(first_step_row + row) * n, n, x_row, k_thread.x, PROJECTION_THREADS);
    if (p.input.norm_run != 0u) {
      norm_floats(p.input, norm_values, x_row, inverse, k_thread.x);
    }
  }

  const bool has_row = k_simdgroup < n_rows;
  const u32 chain = k_lane % 4;
  SHARED(const f32) my_weights = matrix_rows + k_lane / 4 * FLOAT_STRIDE + chain;
  SHARED(const f32) my_x = x_rows + (has_row ? k_simdgroup : 0u) * n + chain;
  f32 sum = 0.0f;
  for (u32 begin = 0; begin < n; begin += FLOAT_CHUNK) {
    group_barrier();  // the chunk before has been summed
    UNROLL for (u32 i = 0; i < FLOAT_LOADS; ++i) {
      const u32 place = (i * PROJECTION_THREADS + k_thread.x) * 4;
      store4(matrix_rows + place / FLOAT_CHUNK * FLOAT_STRIDE + place % FLOAT_CHUNK, loaded[i]);
    }
    group_barrier();
    load_floats(matrix, first_output, n_out, n, begin + FLOAT_CHUNK, k_thread.x, loaded);
    if (has_row) {
      sum = add_chain(my_weights, my_x + begin, min_u32(n - begin, FLOAT_CHUNK), sum);
    }
  }
  sum = sum + shuffle_xor(sum, 1);
  sum = sum + shuffle_xor(sum, 2);
  const u32 output = first_output + k_lane / 4;
  if (has_row && chain == 0u && output < n_out) {
    const u32 row = first_step_row + k_simdgroup;
    const u64 to = u64(row) * n_out + output;
    const f32 result =
        p.has_row_gate != 0u ? sum * activate_f32(p.row_activation, row_gate[row]) : sum;
    if (part == 0u) {
      y0[to] = p.has_residual != 0u ? result + residual[to] : result;
    } else if (part == 1u) {
      y1[to] = result;
    } else {
      y2[to] = result;
    }
  }
}

}  // namespace hearth::backend::gpu
