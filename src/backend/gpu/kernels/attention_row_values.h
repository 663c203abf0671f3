#pragma once
/// Weighted values of attention_rows_TYPE: of a part's keys, sixteen at a time.

#include "backend/gpu/kernels/attention_cells.h"
#include "backend/gpu/kernels/lanes.h"

namespace hearth::backend::gpu {

#define BROUGHT_SCORES 4u

/// What a chunk of 16 keys brings the thread: of values, and two scores.
struct ValueChunk {
  RawEight values[BROUGHT_EIGHTS];
  f32 scores[BROUGHT_SCORES];
};

DEVICE_FN ValueChunk load_values(u32 type, KvHead head, DEVICE(const i32) table, KeyRange range,
                                 u32 key, DEVICE(const u8) values, DEVICE(const f32) scores,
                                 u32 thread_id) {
  ValueChunk chunk;
  DEVICE(const u8) panel = values + panel_start(type, head, table, max_u32(key, range.begin));
  UNROLL for (u32 j = 0; j < BROUGHT_EIGHTS; ++j) {
    const u32 eight = min_u32(thread_id + j * ATTENTION_ROWS_THREADS, 2u * head.head_dim - 1u);
    const u32 slot = eight / (head.head_dim / EIGHT);
    chunk.values[j] =
        load_value(type, panel, head.head_dim, slot, eight % (head.head_dim / EIGHT) * EIGHT);
  }
  UNROLL for (u32 j = 0; j < BROUGHT_SCORES; ++j) {
    chunk.scores[j] = scores[(key - range.start) * ATTENTION_ROWS_QUERIES + thread_id +
                             j * ATTENTION_ROWS_THREADS];
  }
  return chunk;
}

/// Values 8 i ... of 16 keys to cells.
DEVICE_FN void store_value(u32 type, THREAD_REF(const RawEight) raw, u32 i, SHARED(f32) cells) {
  store4(cells + EIGHT * i, make4(value_of_eight(type, raw, 0), value_of_eight(type, raw, 1),
                                  value_of_eight(type, raw, 2), value_of_eight(type, raw, 3)));
  store4(cells + (EIGHT * i + 4),
         make4(value_of_eight(type, raw, 4), value_of_eight(type, raw, 5),
               value_of_eight(type, raw, 6), value_of_eight(type, raw, 7)));
}

/// Adds the weighted values of 16 keys. weights [16, QUERY_STRIDE] from the thread's queries on,
/// cells [16, head_dim].
DEVICE_FN void add_sixteen_values(SHARED(const f32) weights, SHARED(const f32) cells, u32 head_dim,
                                  u32 first_dim, THREAD(f32) sums) {
  UNROLL for (u32 key = 0; key < ATTENTION_BLOCK_KEYS; ++key) {
    f32 own[EIGHT];
    f32 value[EIGHT];
    load_own(weights + key * QUERY_STRIDE, 4, own);
    load_own(cells + (key * head_dim + first_dim), OWN_GAP, value);
    UNROLL for (u32 i = 0; i < EIGHT; ++i) {
      UNROLL for (u32 j = 0; j < EIGHT; ++j) {
        sums[EIGHT * i + j] = fma_f32(own[i], value[j], sums[EIGHT * i + j]);
      }
    }
  }
}

/// The same where not every query sees all of the keys, which begin at `first`.
DEVICE_FN void add_seen_of_sixteen(SHARED(const f32) weights, SHARED(const f32) cells, u32 head_dim,
                                   u32 first_dim, u32 first, SHARED(const u32) begins,
                                   SHARED(const u32) ends, THREAD(f32) sums) {
  for (u32 key = 0; key < ATTENTION_BLOCK_KEYS; ++key) {
    f32 value[EIGHT];
    load_own(cells + (key * head_dim + first_dim), OWN_GAP, value);
    UNROLL for (u32 i = 0; i < EIGHT; ++i) {
      if (first + key >= begins[i] && first + key < ends[i]) {
        const f32 weight = weights[key * QUERY_STRIDE + i];
        UNROLL for (u32 j = 0; j < EIGHT; ++j) {
          sums[EIGHT * i + j] = fma_f32(weight, value[j], sums[EIGHT * i + j]);
        }
      }
    }
  }
}

/// Weighted values of a part's keys to `sums` [EIGHT, EIGHT], and the sums of weights to
/// weight_sums [ATTENTION_ROWS_QUERIES]. part_maxima [ATTENTION_ROWS_QUERIES].
DEVICE_FN void sum_part(u32 type, KvHead head, DEVICE(const i32) table, KeyRange range,
                        SeenKeys seen, DEVICE(const u8) values, DEVICE(const f32) scores,
                        SHARED(const u32) begins, SHARED(const u32) ends,
                        SHARED(const f32) part_maxima, SHARED(f32) weights, SHARED(f32) cells,
                        SHARED(f32) weight_sums, u32 thread_id, THREAD(f32) sums) {
  const OwnPlace own = own_place(thread_id);
  const u32 lane = thread_id % N_LANES;  // of the sum; the key in its block
  f32 partials[BROUGHT_SCORES];
  UNROLL for (u32 j = 0; j < BROUGHT_SCORES; ++j) {
    partials[j] = 0.0f;
  }
  UNROLL for (u32 i = 0; i < EIGHT * EIGHT; ++i) {
    sums[i] = 0.0f;
  }
  const u32 first = range.begin / ATTENTION_BLOCK_KEYS * ATTENTION_BLOCK_KEYS;
  ValueChunk next = load_values(type, head, table, range, first, values, scores, thread_id);
  for (u32 key = first; key < range.end; key += ATTENTION_BLOCK_KEYS) {
    f32 made[BROUGHT_SCORES];
    UNROLL for (u32 j = 0; j < BROUGHT_SCORES; ++j) {
      const u32 query = (thread_id + j * ATTENTION_ROWS_THREADS) / N_LANES;
      const bool is_seen = key + lane >= begins[query] && key + lane < ends[query];
      made[j] = is_seen ? exp_f32(next.scores[j] - part_maxima[query]) : 0.0f;
      partials[j] = is_seen ? partials[j] + made[j] : partials[j];
    }
    group_barrier();  // the keys before have been multiplied
    UNROLL for (u32 j = 0; j < BROUGHT_SCORES; ++j) {
      weights[lane * QUERY_STRIDE + (thread_id + j * ATTENTION_ROWS_THREADS) / N_LANES] = made[j];
    }
    UNROLL for (u32 j = 0; j < BROUGHT_EIGHTS; ++j) {
      const u32 eight = thread_id + j * ATTENTION_ROWS_THREADS;
      if (eight < 2u * head.head_dim) {
        store_value(type, next.values[j], eight, cells);
      }
    }
    group_barrier();
    if (key + ATTENTION_BLOCK_KEYS < range.end) {
      next = load_values(type, head, table, range, key + ATTENTION_BLOCK_KEYS, values, scores,
                         thread_id);
    }
    if (own.first < head.head_dim) {
      if (key >= seen.full_begin && key + ATTENTION_BLOCK_KEYS <= seen.full_end) {
        add_sixteen_values(weights + own.query, cells, head.head_dim, own.first, sums);
      } else {
        add_seen_of_sixteen(weights + own.query, cells, head.head_dim, own.first, key,
                            begins + own.query, ends + own.query, sums);
      }
    }
  }
  UNROLL for (u32 j = 0; j < BROUGHT_SCORES; ++j) {
    const f32 sum = sum_lanes(partials[j]);
    if (lane == 0u) {
      weight_sums[(thread_id + j * ATTENTION_ROWS_THREADS) / N_LANES] = sum;
    }
  }
}

}  // namespace hearth::backend::gpu
