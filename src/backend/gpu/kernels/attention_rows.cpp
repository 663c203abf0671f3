// attention_rows_TYPE: a threadgroup has 64 queries of one key/value head, neighbours in [rows,
// heads of the group], and takes those of each sequence together. Keys come in parts of 512:
//   scores  a thread has eight queries and eight keys of one half of the part, then of the other;
//           sixteen dimensions of queries and keys at a time pass through shared memory. Scores go
//           to memory.
//   values  sixteen keys at a time pass through shared memory, values and what they weigh for each
//           query, whose sum a thread adds up that makes the weights: a lane of the sum's order. A
//           thread has eight queries and eight dimensions.
// In shared memory keys and values are floats, since every thread that reads them would convert
// them again. What came of the parts before lies in y. What is next is on its way while one is
// multiplied. 25 KiB of shared memory. Bound by multiply-adds; with heads of less than 256 values,
// threads without dimensions wait.

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/kernels/attention.h"
#include "backend/gpu/kernels/attention_row_scores.h"
#include "backend/gpu/kernels/attention_row_values.h"

namespace hearth::backend::gpu {

// What becomes of a part's sums for a query.
#define FOLD_NOTHING 0u
#define FOLD_FIRST 1u
#define FOLD_NEXT 2u
#define FOLD_LAST 4u  // beside one of those before

/// By one thread for each query: `folds` [ATTENTION_ROWS_QUERIES], and what to keep and take,
/// [ATTENTION_ROWS_QUERIES] each. The query's maximum and sum of weights are the thread's.
DEVICE_FN void fold_query(KeyRange range, u32 begin, u32 end, f32 part_maximum, f32 part_sum,
                          THREAD_REF(f32) maximum, THREAD_REF(f32) sum, SHARED(u32) folds,
                          SHARED(f32) keeps, SHARED(f32) takes, SHARED(f32) totals, u32 query) {
  const u32 part_end = range.start + ATTENTION_PART_KEYS;
  u32 fold = FOLD_NOTHING;
  if (begin < part_end && end > range.start) {
    fold = (begin >= range.start ? FOLD_FIRST : FOLD_NEXT) | (end <= part_end ? FOLD_LAST : 0u);
    if (begin >= range.start) {
      maximum = part_maximum;
      sum = part_sum;
    } else {
      const f32 larger = part_maximum > maximum ? part_maximum : maximum;
      const f32 keep = exp_f32(maximum - larger);
      const f32 take = exp_f32(part_maximum - larger);
      maximum = larger;
      sum = fma_f32(take, part_sum, keep * sum);
      keeps[query] = keep;
      takes[query] = take;
    }
  }
  folds[query] = fold;
  totals[query] = sum;
}

/// Folds the thread's sums into y, and divides them after the last part. Dimensions lie together by
/// fours.
DEVICE_FN void fold_values(THREAD(const f32) sums, OwnPlace own, u32 head_dim,
                           SHARED(const u32) places, SHARED(const u32) folds,
                           SHARED(const f32) keeps, SHARED(const f32) takes,
                           SHARED(const f32) totals, DEVICE(f32) y) {
  UNROLL for (u32 i = 0; i < 2 * EIGHT; ++i) {
    const u32 query = own.query + i / 2;
    const u32 fold = folds[query];
    const u32 dim = own.first + own_offset(i % 2 * 4);
    if (fold != FOLD_NOTHING && dim < head_dim) {
      DEVICE(f32) to = y + (u64(places[query]) * head_dim + dim);
      f32x4 value = make4(sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]);
      if ((fold & FOLD_NEXT) != 0u) {
        const f32 take = takes[query];
        const f32x4 kept = load4(to) * keeps[query];
        value = make4(fma_f32(take, value.x, kept.x), fma_f32(take, value.y, kept.y),
                      fma_f32(take, value.z, kept.z), fma_f32(take, value.w, kept.w));
      }
      if ((fold & FOLD_LAST) != 0u) {
        const f32 total = totals[query];
        value = make4(value.x / total, value.y / total, value.z / total, value.w / total);
      }
      store4(to, value);
    }
  }
}

// Queries that see most keys come first, so that no threadgroup is left with them at the end.
#define ATTENTION_ROWS_KERNEL(name, type)                                                          \
  KERNEL(name, ATTENTION_ROWS_THREADS, AttentionParams, BUFFER(0, const u32, counts),              \
         BUFFER(1, const f32, q), BUFFER(2, const i32, positions),                                 \
         BUFFER(3, const i32, sequences), BUFFER(4, const i32, tables), BUFFER(5, const u8, keys), \
         BUFFER(6, const u8, values), BUFFER(7, f32, scores), BUFFER(8, f32, y)) {                 \
    SHARED_ARRAY(f32, cells, (KEY_DIMS * HALF_KEYS));                                              \
    SHARED_ARRAY(f32, query_cells, (ATTENTION_BLOCK_KEYS * QUERY_STRIDE));                         \
    SHARED_ARRAY(f32, maxima, (2 * 4 * ATTENTION_ROWS_QUERIES));                                   \
    SHARED_ARRAY(f32, part_maxima, ATTENTION_ROWS_QUERIES);                                        \
    SHARED_ARRAY(f32, part_sums, ATTENTION_ROWS_QUERIES);                                          \
    SHARED_ARRAY(f32, totals, ATTENTION_ROWS_QUERIES);                                             \
    SHARED_ARRAY(f32, keeps, ATTENTION_ROWS_QUERIES);                                              \
    SHARED_ARRAY(f32, takes, ATTENTION_ROWS_QUERIES);                                              \
    SHARED_ARRAY(u32, folds, ATTENTION_ROWS_QUERIES);                                              \
    SHARED_ARRAY(u32, begins, ATTENTION_ROWS_QUERIES);                                             \
    SHARED_ARRAY(u32, ends, ATTENTION_ROWS_QUERIES);                                               \
    SHARED_ARRAY(u32, places, ATTENTION_ROWS_QUERIES);                                             \
    const u32 group = p.n_heads / p.n_kv_heads;                                                    \
    const u32 n_queries = counts[0] * group;                                                       \
    const u32 t = k_thread.x;                                                                      \
    QueryRun run;                                                                                  \
    run.first_query = (k_grid_size.y - 1u - k_group.y) * ATTENTION_ROWS_QUERIES;                   \
    if (run.first_query >= n_queries) {                                                            \
      return;                                                                                      \
    }                                                                                              \
    run.last_query = min_u32(run.first_query + ATTENTION_ROWS_QUERIES, n_queries) - 1u;            \
    KvHead head;                                                                                   \
    head.head_dim = p.head_dim;                                                                    \
    head.n_kv_heads = p.n_kv_heads;                                                                \
    head.kv_head = k_group.x;                                                                      \
    DEVICE(f32)                                                                                    \
    own_scores = scores + u64(k_group.y * k_grid_size.x + k_group.x) * ATTENTION_ROWS_SCORES;      \
    const OwnPlace own = own_place(t);                                                             \
    for (run.first_row = run.first_query / group; run.first_row <= run.last_query / group;         \
         run.first_row = run.end_row) {                                                            \
      const i32 sequence = sequences[run.first_row];                                               \
      run.end_row = run.first_row + 1u;                                                            \
      while (run.end_row <= run.last_query / group && sequences[run.end_row] == sequence) {        \
        ++run.end_row;                                                                             \
      }                                                                                            \
      DEVICE(const i32) table = tables + u64(u32(sequence)) * p.table_stride;                      \
      group_barrier(); /* the run before has been written */                                       \
      place_queries(p, run, head.kv_head, positions, begins, ends, places, t);                     \
      group_barrier();                                                                             \
      const SeenKeys seen = seen_keys(begins, ends);                                               \
      f32 maximum = 0.0f;                                                                          \
      f32 total = 0.0f;                                                                            \
      for (u32 start = seen.begin / ATTENTION_PART_KEYS * ATTENTION_PART_KEYS; start < seen.end;   \
           start += ATTENTION_PART_KEYS) {                                                         \
        KeyRange range;                                                                            \
        range.start = start;                                                                       \
        range.begin = max_u32(start, seen.begin);                                                  \
        range.end = min_u32(start + ATTENTION_PART_KEYS, seen.end);                                \
        for (u32 of_two = 0; of_two < 2; ++of_two) {                                               \
          if (has_keys(start + of_two * HALF_KEYS, HALF_KEYS, range)) {                            \
            score_half(type, head, table, range, start + of_two * HALF_KEYS, p.scale, keys, q,     \
                       begins, ends, places, query_cells, cells,                                   \
                       maxima + of_two * 4 * ATTENTION_ROWS_QUERIES, own_scores, t);               \
          } else if (t < 4 * ATTENTION_ROWS_QUERIES) {                                             \
            maxima[of_two * 4 * ATTENTION_ROWS_QUERIES + t] = f32_of_bits(0xff800000u);            \
          }                                                                                        \
        }                                                                                          \
        group_barrier_device(); /* scores and maxima are there */                                  \
        if (t < ATTENTION_ROWS_QUERIES) {                                                          \
          f32 largest = maxima[t];                                                                 \
          for (u32 i = 1; i < 8; ++i) {                                                            \
            largest = maxima[i * ATTENTION_ROWS_QUERIES + t] > largest                             \
                          ? maxima[i * ATTENTION_ROWS_QUERIES + t]                                 \
                          : largest;                                                               \
          }                                                                                        \
          part_maxima[t] = largest;                                                                \
        }                                                                                          \
        group_barrier();                                                                           \
        f32 sums[EIGHT * EIGHT];                                                                   \
        sum_part(type, head, table, range, seen, values, own_scores, begins, ends, part_maxima,    \
                 query_cells, cells, part_sums, t, sums);                                          \
        group_barrier();                                                                           \
        if (t < ATTENTION_ROWS_QUERIES) {                                                          \
          fold_query(range, begins[t], ends[t], part_maxima[t], part_sums[t], maximum, total,      \
                     folds, keeps, takes, totals, t);                                              \
        }                                                                                          \
        group_barrier();                                                                           \
        fold_values(sums, own, p.head_dim, places, folds, keeps, takes, totals, y);                \
      }                                                                                            \
    }                                                                                              \
  }

ATTENTION_ROWS_KERNEL(attention_rows_f32, KV_F32)
ATTENTION_ROWS_KERNEL(attention_rows_f16, KV_F16)
ATTENTION_ROWS_KERNEL(attention_rows_bf16, KV_BF16)
ATTENTION_ROWS_KERNEL(attention_rows_q8_0, KV_Q8_0)
ATTENTION_ROWS_KERNEL(attention_rows_q4_0, KV_Q4_0)

}  // namespace hearth::backend::gpu
