#pragma once
/// Scores of attention_rows_TYPE: of half a part's keys, which pass through shared memory, to
/// memory.

#include "backend/gpu/kernels/attention_cells.h"

namespace hearth::backend::gpu {

#define KEY_DIMS 16u
#define HALF_KEYS 256u      // of a part: those of all threads
#define BROUGHT_QUERIES 4u  // numbers of queries that a thread brings

/// Eight dimensions of key thread_id of a half to rows of cells [KEY_DIMS, HALF_KEYS].
DEVICE_FN void store_key(u32 type, THREAD_REF(const RawEight) raw, u32 thread_id,
                         SHARED(f32) cells) {
  UNROLL for (u32 i = 0; i < EIGHT; ++i) {
    cells[i * HALF_KEYS + thread_id] = value_of_eight(type, raw, i);
  }
}

/// KEY_DIMS dimensions more of the thread's 64 dots. q [KEY_DIMS, QUERY_STRIDE], k [KEY_DIMS,
/// HALF_KEYS].
DEVICE_FN void add_dots(SHARED(const f32) q, SHARED(const f32) k, OwnPlace own, THREAD(f32) dots) {
  UNROLL for (u32 d = 0; d < KEY_DIMS; ++d) {
    f32 queries[EIGHT];
    f32 keys[EIGHT];
    load_own(q + (d * QUERY_STRIDE + own.query), 4, queries);
    load_own(k + (d * HALF_KEYS + own.first), OWN_GAP, keys);
    UNROLL for (u32 i = 0; i < EIGHT; ++i) {
      UNROLL for (u32 j = 0; j < EIGHT; ++j) {
        dots[EIGHT * i + j] = fma_f32(queries[i], keys[j], dots[EIGHT * i + j]);
      }
    }
  }
}

/// Where four neighbouring keys of a part are in scores [ATTENTION_PART_KEYS /
/// 16][ATTENTION_ROWS_QUERIES][16].
DEVICE_FN u32 score_place(u32 key, u32 query) {
  return (key / ATTENTION_BLOCK_KEYS * ATTENTION_ROWS_QUERIES + query) * ATTENTION_BLOCK_KEYS +
         key % ATTENTION_BLOCK_KEYS;
}

/// The thread's scores to memory, and the largest of its simdgroup's for each query that sees them
/// to maxima [ATTENTION_ROWS_QUERIES].
DEVICE_FN void store_scores(u32 start, u32 first_key, f32 scale, bool is_seen, OwnPlace own,
                            SHARED(const u32) begins, SHARED(const u32) ends, SHARED(f32) maxima,
                            DEVICE(f32) scores, u32 lane, THREAD(f32) dots) {
  UNROLL for (u32 i = 0; i < EIGHT; ++i) {
    f32 maximum = f32_of_bits(0xff800000u);  // minus infinity, which every score beats
    if (is_seen) {
      const u32 begin = begins[own.query + i];
      const u32 end = ends[own.query + i];
      UNROLL for (u32 j = 0; j < EIGHT; ++j) {
        const u32 key = start + first_key + own_offset(j);
        const f32 score = dots[EIGHT * i + j] * scale;
        dots[EIGHT * i + j] = score;
        maximum = key >= begin && key < end && score > maximum ? score : maximum;
      }
      UNROLL for (u32 j = 0; j < EIGHT; j += 4) {
        store4(scores + score_place(first_key + own_offset(j), own.query + i),
               make4(dots[EIGHT * i + j], dots[EIGHT * i + j + 1], dots[EIGHT * i + j + 2],
                     dots[EIGHT * i + j + 3]));
      }
    }
    UNROLL for (u32 distance = 1; distance < 8; distance *= 2) {
      const f32 other = shuffle_xor(maximum, distance);
      maximum = other > maximum ? other : maximum;
    }
    if (lane % 8 == 0) {
      maxima[own.query + i] = maximum;
    }
  }
}

/// Scores of the keys of half a part, which begins at `first`, to memory, and the largest of each
/// 64 keys to maxima [4, ATTENTION_ROWS_QUERIES]. Keys out of sight are computed as the next in
/// sight.
DEVICE_FN void score_half(u32 type, KvHead head, DEVICE(const i32) table, KeyRange range, u32 first,
                          f32 scale, DEVICE(const u8) keys, DEVICE(const f32) q,
                          SHARED(const u32) begins, SHARED(const u32) ends,
                          SHARED(const u32) places, SHARED(f32) q_cells, SHARED(f32) k_cells,
                          SHARED(f32) maxima, DEVICE(f32) scores, u32 thread_id) {
  const OwnPlace own = own_place(thread_id);
  const u32 seen = min_u32(max_u32(first + thread_id, range.begin), range.end - 1u);
  DEVICE(const u8) panel = keys + panel_start(type, head, table, seen);
  const u32 slot = seen % ATTENTION_BLOCK_KEYS;
  // Four numbers of queries: of one dimension, of queries that are 16 apart.
  const u32 q_dim = thread_id % KEY_DIMS;
  u32 q_starts[BROUGHT_QUERIES];
  f32 next_q[BROUGHT_QUERIES];
  UNROLL for (u32 j = 0; j < BROUGHT_QUERIES; ++j) {
    q_starts[j] = places[thread_id / KEY_DIMS + j * (ATTENTION_ROWS_THREADS / KEY_DIMS)];
    next_q[j] = q[u64(q_starts[j]) * head.head_dim + q_dim];
  }
  RawEight next[BROUGHT_EIGHTS];
  UNROLL for (u32 j = 0; j < BROUGHT_EIGHTS; ++j) {
    next[j] = load_key(type, panel, head.head_dim, slot, j * EIGHT);
  }
  f32 dots[EIGHT * EIGHT];
  UNROLL for (u32 i = 0; i < EIGHT * EIGHT; ++i) {
    dots[i] = 0.0f;
  }
  const bool is_seen = has_keys(first + thread_id / 32 % 4 * 64, 64, range);
  for (u32 d = 0; d < head.head_dim; d += KEY_DIMS) {
    group_barrier();  // the dimensions before have been multiplied
    UNROLL for (u32 j = 0; j < BROUGHT_QUERIES; ++j) {
      q_cells[q_dim * QUERY_STRIDE + thread_id / KEY_DIMS +
              j * (ATTENTION_ROWS_THREADS / KEY_DIMS)] = next_q[j];
    }
    UNROLL for (u32 j = 0; j < BROUGHT_EIGHTS; ++j) {
      store_key(type, next[j], thread_id, k_cells + j * EIGHT * HALF_KEYS);
    }
    group_barrier();
    if (d + KEY_DIMS < head.head_dim) {
      UNROLL for (u32 j = 0; j < BROUGHT_QUERIES; ++j) {
        next_q[j] = q[u64(q_starts[j]) * head.head_dim + d + KEY_DIMS + q_dim];
      }
      UNROLL for (u32 j = 0; j < BROUGHT_EIGHTS; ++j) {
        next[j] = load_key(type, panel, head.head_dim, slot, d + KEY_DIMS + j * EIGHT);
      }
    }
    if (is_seen) {
      add_dots(q_cells, k_cells, own, dots);
    }
  }
  store_scores(range.start, first - range.start + own.first, scale, is_seen, own, begins, ends,
               maxima + thread_id / 32 % 4 * ATTENTION_ROWS_QUERIES, scores, thread_id % 32, dots);
}

}  // namespace hearth::backend::gpu
