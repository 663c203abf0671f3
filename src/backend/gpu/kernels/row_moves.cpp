// A thread per element of the result; bound by memory.

#include "backend/gpu/kernels/row_moves.h"

#include "backend/gpu/dialect/dialect.h"

namespace hearth::backend::gpu {

KERNEL(columns_f32, 256, ColumnsParams, BUFFER(0, const u32, counts), BUFFER(1, const f32, x),
       BUFFER(2, f32, y)) {
  const u32 i = k_group.x * k_group_size.x + k_thread.x;
  const u64 row = k_group.y;
  if (row < counts[p.axis] && i < p.n) {
    const u64 run = row * (p.n / p.width) + i / p.width;
    y[row * p.n + i] = x[run * p.period + p.start + i % p.width];
  }
}

KERNEL(concat_f32, 256, ConcatParams, BUFFER(0, const u32, counts), BUFFER(1, const f32, a),
       BUFFER(2, const f32, b), BUFFER(3, f32, y)) {
  const u32 i = k_group.x * k_group_size.x + k_thread.x;
  const u64 row = k_group.y;
  if (row < counts[p.axis] && i < p.n) {
    y[row * p.n + i] = i < p.n_a ? a[row * p.n_a + i] : b[row * (p.n - p.n_a) + (i - p.n_a)];
  }
}

KERNEL(gather_rows_f32, 256, RowMoveParams, BUFFER(0, const u32, counts), BUFFER(1, const f32, x),
       BUFFER(2, const i32, sources), BUFFER(3, f32, y)) {
  const u32 i = k_group.x * k_group_size.x + k_thread.x;
  const u64 row = k_group.y;
  if (row < counts[p.axis] && i < p.n) {
    y[row * p.n + i] = x[u64(u32(sources[row])) * p.n + i];
  }
}

KERNEL(store_rows_f32, 256, RowMoveParams, BUFFER(0, const u32, counts), BUFFER(1, const f32, x),
       BUFFER(2, const i32, targets), BUFFER(3, f32, store), BUFFER(4, f32, y)) {
  const u32 i = k_group.x * k_group_size.x + k_thread.x;
  const u64 row = k_group.y;
  if (row < counts[p.axis] && i < p.n) {
    y[row * p.n + i] = x[row * p.n + i];
    if (targets[row] >= 0) {
      store[u64(u32(targets[row])) * p.n + i] = x[row * p.n + i];
    }
  }
}

}  // namespace hearth::backend::gpu
