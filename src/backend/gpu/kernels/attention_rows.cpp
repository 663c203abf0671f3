// attention_rows_TYPE: a threadgroup has 32 queries of one key/value head, neighbours in [rows,
// heads of the group], and takes those of each sequence together. Keys come in parts of 512:
//   scores  a thread has eight queries and eight keys; eight dimensions of queries and keys at a
//           time pass through shared memory. Scores go to memory.
//   values  sixteen keys at a time pass through shared memory, values and what they weigh for each
//           query, whose sum a thread adds up that makes the weights: a lane of the sum's order. A
//           thread has eight queries and four dimensions.
// What came of the parts before lies in y. What is next is on its way while one is multiplied. 21
// KiB of shared memory. Bound by multiply-adds; with heads of less than 256 values, threads without
// dimensions wait.

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/kernels/attention.h"
#include "backend/gpu/kernels/kv_keys.h"
#include "backend/gpu/kernels/lanes.h"

namespace hearth::backend::gpu {

#define EIGHT 8u           // queries of a thread, keys of a thread, dimensions at once
#define QUERY_STRIDE 36u   // of floats for each query; different banks
#define BROUGHT_EIGHTS 2u  // of dimensions of a key, or of a value, that a thread brings
#define SIMDGROUP_KEYS 64u
#define BROUGHT_SCORES 2u

/// Eight values of a key or of a value, as they are stored.
struct RawEight {
  u32x4 low;
  u32x4 high;  // of floats alone
  f32 scale;
};

/// From byte `at` of a panel's codes on; `scale` is the place of their scale.
DEVICE_FN RawEight load_eight(u32 type, DEVICE(const u8) panel, u32 at, u32 head_dim, u32 scale) {
  const u32x4 no_words = {0, 0, 0, 0};
  RawEight raw = {no_words, no_words, 1.0f};
  DEVICE(const u32) from = words(panel) + at / 4;
  if (type == KV_Q4_0) {
    raw.low.x = from[0];
  } else if (type == KV_Q8_0) {
    const u32x2 both = load2(from);
    raw.low.x = both.x;
    raw.low.y = both.y;
  } else {
    raw.low = load4(from);
  }
  if (type >= KV_Q8_0) {
    raw.scale = kv_scale(panel + kv_cell_bytes(type, head_dim), scale);
  }
  return raw;
}

/// Bytes of eight values; of floats, half of which lie elsewhere, those of four.
DEVICE_FN u32 eight_bytes(u32 type) {
  return type == KV_Q4_0 ? 4u : (type == KV_Q8_0 ? 8u : 16u);
}

/// Dimensions d ... d + 7 of the key in a slot of its panel.
DEVICE_FN RawEight load_key(u32 type, DEVICE(const u8) panel, u32 head_dim, u32 slot, u32 d) {
  const u32 n_word = kv_word_values(type);
  const u32 at = 16 * (d / n_word * ATTENTION_BLOCK_KEYS + slot) +
                 (n_word > EIGHT ? d % n_word / EIGHT * eight_bytes(type) : 0u);
  RawEight raw = load_eight(type, panel, at, head_dim, d / 32 * ATTENTION_BLOCK_KEYS + slot);
  if (type == KV_F32) {
    raw.high = load4(words(panel) + (at / 4 + 4 * ATTENTION_BLOCK_KEYS));
  }
  return raw;
}

/// The same of a value.
DEVICE_FN RawEight load_value(u32 type, DEVICE(const u8) panel, u32 head_dim, u32 slot, u32 d) {
  const u32 eight = (slot * head_dim + d) / EIGHT;
  const u32 at = eight * eight_bytes(type) * (type == KV_F32 ? 2u : 1u);
  RawEight raw = load_eight(type, panel, at, head_dim, (slot * head_dim + d) / 32);
  if (type == KV_F32) {
    raw.high = load4(words(panel) + (at / 4 + 4));
  }
  return raw;
}

DEVICE_FN f32 value_of_eight(u32 type, THREAD_REF(const RawEight) raw, u32 i) {
  if (type == KV_F32) {
    return kv_part_value(type, word_part(i < 4u ? raw.low : raw.high, i % 4), 0, 1.0f);
  }
  const u32 in_word = type == KV_Q4_0 ? 8u : (type == KV_Q8_0 ? 4u : 2u);
  return kv_part_value(type, word_part(raw.low, i / in_word), i % in_word, raw.scale);
}

/// What a threadgroup does for the queries of one sequence.
struct QueryRun {
  u32 first_query;  // of the threadgroup
  u32 last_query;
  u32 first_row;  // of the run
  u32 end_row;
};

/// Keys that queries of a run see: some of them, and all of them.
struct SeenKeys {
  u32 begin;
  u32 end;
  u32 full_begin;
  u32 full_end;
};

/// Where the thread's eight queries and first four keys, or four dimensions, are.
struct OwnPlace {
  u32 query;
  u32 key;  // and 32 more for the other four
  u32 dim;
};

DEVICE_FN OwnPlace own_place(u32 thread_id) {
  const u32 lane = thread_id % 32;
  const OwnPlace place = {lane / 8 * EIGHT, thread_id / 32 * SIMDGROUP_KEYS + lane % 8 * 4,
                          thread_id / 32 * 32 + lane % 8 * 4};
  return place;
}

DEVICE_FN void load_own(SHARED(const f32) from, u32 gap, THREAD(f32) own) {
  const f32x4 low = load4(from);
  const f32x4 high = load4(from + gap);
  own[0] = low.x;
  own[1] = low.y;
  own[2] = low.z;
  own[3] = low.w;
  own[4] = high.x;
  own[5] = high.y;
  own[6] = high.z;
  own[7] = high.w;
}

/// Which keys queries see, and where their results go: [ATTENTION_ROWS_QUERIES] each; 0 keys for
/// those that do not belong to the run.
DEVICE_FN void place_queries(PARAMS(AttentionParams) p, QueryRun run, u32 kv_head,
                             DEVICE(const i32) positions, SHARED(u32) begins, SHARED(u32) ends,
                             SHARED(u32) places, u32 thread_id) {
  if (thread_id < ATTENTION_ROWS_QUERIES) {
    const u32 group = p.n_heads / p.n_kv_heads;
    const u32 query = run.first_query + thread_id;
    const u32 row = query / group;
    const bool is_own = query <= run.last_query && row >= run.first_row && row < run.end_row;
    const u32 seen_row = is_own ? row : run.first_row;
    const u32 position = u32(positions[seen_row]);
    begins[thread_id] = is_own ? first_key_seen(position, p.window) : 0u;
    ends[thread_id] = is_own ? position + 1u : 0u;
    places[thread_id] = seen_row * p.n_heads + kv_head * group + (is_own ? query % group : 0u);
  }
}

DEVICE_FN SeenKeys seen_keys(SHARED(const u32) begins, SHARED(const u32) ends) {
  SeenKeys seen = {~0u, 0, 0, ~0u};
  for (u32 i = 0; i < ATTENTION_ROWS_QUERIES; ++i) {
    if (ends[i] != 0u) {
      seen.begin = min_u32(seen.begin, begins[i]);
      seen.end = max_u32(seen.end, ends[i]);
      seen.full_begin = max_u32(seen.full_begin, begins[i]);
      seen.full_end = min_u32(seen.full_end, ends[i]);
    }
  }
  return seen;
}

DEVICE_FN bool has_keys(u32 first, u32 n, KeyRange range) {
  return first < range.end && first + n > range.begin;
}

/// Eight dimensions more of the thread's 64 dots. q [EIGHT, QUERY_STRIDE], k [EIGHT,
/// ATTENTION_PART_KEYS].
DEVICE_FN void add_dots(SHARED(const f32) q, SHARED(const f32) k, OwnPlace own, THREAD(f32) dots) {
  UNROLL for (u32 d = 0; d < EIGHT; ++d) {
    f32 queries[EIGHT];
    f32 keys[EIGHT];
    load_own(q + (d * QUERY_STRIDE + own.query), 4, queries);
    load_own(k + (d * ATTENTION_PART_KEYS + own.key), 32, keys);
    UNROLL for (u32 i = 0; i < EIGHT; ++i) {
      UNROLL for (u32 j = 0; j < EIGHT; ++j) {
        dots[EIGHT * i + j] = fma_f32(queries[i], keys[j], dots[EIGHT * i + j]);
      }
    }
  }
}

/// Scores of a part's keys to scores [ATTENTION_PART_KEYS / 16][ATTENTION_ROWS_QUERIES][16], and
/// the largest of each simdgroup's to maxima [ATTENTION_ROWS_THREADS / 32, ATTENTION_ROWS_QUERIES].
/// Keys out of sight are computed as the next in sight.
DEVICE_FN void score_part(u32 type, KvHead head, DEVICE(const i32) table, KeyRange range, f32 scale,
                          DEVICE(const u8) keys, DEVICE(const f32) q, SHARED(const u32) begins,
                          SHARED(const u32) ends, SHARED(const u32) places, SHARED(f32) q_cells,
                          SHARED(f32) k_cells, SHARED(f32) maxima, DEVICE(f32) scores,
                          u32 thread_id) {
  const OwnPlace own = own_place(thread_id);
  u64 panels[BROUGHT_EIGHTS];
  u32 slots[BROUGHT_EIGHTS];
  RawEight next[BROUGHT_EIGHTS];
  UNROLL for (u32 j = 0; j < BROUGHT_EIGHTS; ++j) {
    const u32 key = range.start + thread_id + j * ATTENTION_ROWS_THREADS;
    const u32 seen = min_u32(max_u32(key, range.begin), range.end - 1u);
    panels[j] = panel_start(type, head, table, seen);
    slots[j] = seen % ATTENTION_BLOCK_KEYS;
    next[j] = load_key(type, keys + panels[j], head.head_dim, slots[j], 0);
  }
  const u32 q_dim = thread_id % EIGHT;
  const u64 q_start = u64(places[thread_id / EIGHT]) * head.head_dim + q_dim;
  f32 next_q = q[q_start];
  f32 dots[EIGHT * EIGHT];
  UNROLL for (u32 i = 0; i < EIGHT * EIGHT; ++i) {
    dots[i] = 0.0f;
  }
  const u32 simdgroup_key = range.start + thread_id / 32 * SIMDGROUP_KEYS;
  const bool is_seen = has_keys(simdgroup_key, SIMDGROUP_KEYS, range);
  for (u32 d = 0; d < head.head_dim; d += EIGHT) {
    group_barrier();  // the dimensions before have been multiplied
    q_cells[q_dim * QUERY_STRIDE + thread_id / EIGHT] = next_q;
    UNROLL for (u32 j = 0; j < BROUGHT_EIGHTS; ++j) {
      UNROLL for (u32 i = 0; i < EIGHT; ++i) {
        k_cells[i * ATTENTION_PART_KEYS + thread_id + j * ATTENTION_ROWS_THREADS] =
            value_of_eight(type, next[j], i);
      }
    }
    group_barrier();
    if (d + EIGHT < head.head_dim) {
      next_q = q[q_start + d + EIGHT];
      UNROLL for (u32 j = 0; j < BROUGHT_EIGHTS; ++j) {
        next[j] = load_key(type, keys + panels[j], head.head_dim, slots[j], d + EIGHT);
      }
    }
    if (is_seen) {
      add_dots(q_cells, k_cells, own, dots);
    }
  }
  UNROLL for (u32 i = 0; i < EIGHT; ++i) {
    f32 maximum = f32_of_bits(0xff800000u);  // minus infinity, which every score beats
    if (is_seen) {
      const u32 begin = begins[own.query + i];
      const u32 end = ends[own.query + i];
      UNROLL for (u32 j = 0; j < EIGHT; ++j) {
        const u32 key = range.start + own.key + j / 4 * 32 + j % 4;
        const f32 score = dots[EIGHT * i + j] * scale;
        dots[EIGHT * i + j] = score;
        maximum = key >= begin && key < end && score > maximum ? score : maximum;
      }
      UNROLL for (u32 j = 0; j < EIGHT; j += 4) {
        const u32 key = own.key + j / 4 * 32;
        const u32 cell = (key / ATTENTION_BLOCK_KEYS * ATTENTION_ROWS_QUERIES + own.query + i) *
                             ATTENTION_BLOCK_KEYS +
                         key % ATTENTION_BLOCK_KEYS;
        store4(scores + cell, make4(dots[EIGHT * i + j], dots[EIGHT * i + j + 1],
                                    dots[EIGHT * i + j + 2], dots[EIGHT * i + j + 3]));
      }
    }
    UNROLL for (u32 distance = 1; distance < 8; distance *= 2) {
      const f32 other = shuffle_xor(maximum, distance);
      maximum = other > maximum ? other : maximum;
    }
    if (thread_id % 8 == 0) {
      maxima[thread_id / 32 * ATTENTION_ROWS_QUERIES + own.query + i] = maximum;
    }
  }
}

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

/// Adds the weighted values of 16 keys. weights [16, QUERY_STRIDE] from the thread's queries on,
/// cells [16, head_dim] from its dimensions on.
DEVICE_FN void add_sixteen_values(SHARED(const f32) weights, SHARED(const f32) cells, u32 head_dim,
                                  THREAD(f32) sums) {
  UNROLL for (u32 key = 0; key < ATTENTION_BLOCK_KEYS; ++key) {
    f32 own[EIGHT];
    load_own(weights + key * QUERY_STRIDE, 4, own);
    const f32x4 value = load4(cells + key * head_dim);
    UNROLL for (u32 i = 0; i < EIGHT; ++i) {
      sums[4 * i] = fma_f32(own[i], value.x, sums[4 * i]);
      sums[4 * i + 1] = fma_f32(own[i], value.y, sums[4 * i + 1]);
      sums[4 * i + 2] = fma_f32(own[i], value.z, sums[4 * i + 2]);
      sums[4 * i + 3] = fma_f32(own[i], value.w, sums[4 * i + 3]);
    }
  }
}

/// The same where not every query sees all of the keys, which begin at `first`.
DEVICE_FN void add_seen_of_sixteen(SHARED(const f32) weights, SHARED(const f32) cells, u32 head_dim,
                                   u32 first, SHARED(const u32) begins, SHARED(const u32) ends,
                                   THREAD(f32) sums) {
  for (u32 key = 0; key < ATTENTION_BLOCK_KEYS; ++key) {
    const f32x4 value = load4(cells + key * head_dim);
    UNROLL for (u32 i = 0; i < EIGHT; ++i) {
      if (first + key >= begins[i] && first + key < ends[i]) {
        const f32 weight = weights[key * QUERY_STRIDE + i];
        sums[4 * i] = fma_f32(weight, value.x, sums[4 * i]);
        sums[4 * i + 1] = fma_f32(weight, value.y, sums[4 * i + 1]);
        sums[4 * i + 2] = fma_f32(weight, value.z, sums[4 * i + 2]);
        sums[4 * i + 3] = fma_f32(weight, value.w, sums[4 * i + 3]);
      }
    }
  }
}

/// Weighted values of a part's keys to `sums` [EIGHT, 4], and the sums of weights to weight_sums
/// [ATTENTION_ROWS_QUERIES]. part_maxima [ATTENTION_ROWS_QUERIES].
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
  UNROLL for (u32 i = 0; i < 4 * EIGHT; ++i) {
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
        f32 cell[EIGHT];
        UNROLL for (u32 i = 0; i < EIGHT; ++i) {
          cell[i] = value_of_eight(type, next.values[j], i);
        }
        store4(cells + EIGHT * eight, make4(cell[0], cell[1], cell[2], cell[3]));
        store4(cells + (EIGHT * eight + 4), make4(cell[4], cell[5], cell[6], cell[7]));
      }
    }
    group_barrier();
    if (key + ATTENTION_BLOCK_KEYS < range.end) {
      next = load_values(type, head, table, range, key + ATTENTION_BLOCK_KEYS, values, scores,
                         thread_id);
    }
    if (own.dim < head.head_dim) {
      if (key >= seen.full_begin && key + ATTENTION_BLOCK_KEYS <= seen.full_end) {
        add_sixteen_values(weights + own.query, cells + own.dim, head.head_dim, sums);
      } else {
        add_seen_of_sixteen(weights + own.query, cells + own.dim, head.head_dim, key,
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

/// Folds the thread's sums into y, and divides them after the last part.
DEVICE_FN void fold_values(THREAD(const f32) sums, OwnPlace own, u32 head_dim,
                           SHARED(const u32) places, SHARED(const u32) folds,
                           SHARED(const f32) keeps, SHARED(const f32) takes,
                           SHARED(const f32) totals, DEVICE(f32) y) {
  UNROLL for (u32 i = 0; i < EIGHT; ++i) {
    const u32 query = own.query + i;
    const u32 fold = folds[query];
    if (fold != FOLD_NOTHING && own.dim < head_dim) {
      DEVICE(f32) to = y + (u64(places[query]) * head_dim + own.dim);
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
    SHARED_ARRAY(f32, cells, (EIGHT * ATTENTION_PART_KEYS));                                       \
    SHARED_ARRAY(f32, query_cells, (ATTENTION_BLOCK_KEYS * QUERY_STRIDE));                         \
    SHARED_ARRAY(f32, maxima, (ATTENTION_ROWS_THREADS / 32 * ATTENTION_ROWS_QUERIES));             \
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
        score_part(type, head, table, range, p.scale, keys, q, begins, ends, places, query_cells,  \
                   cells, maxima, own_scores, t);                                                  \
        group_barrier_device(); /* scores and maxima are there */                                  \
        if (t < ATTENTION_ROWS_QUERIES) {                                                          \
          f32 largest = maxima[t];                                                                 \
          for (u32 i = 1; i < ATTENTION_ROWS_THREADS / 32; ++i) {                                  \
            largest = maxima[i * ATTENTION_ROWS_QUERIES + t] > largest                             \
                          ? maxima[i * ATTENTION_ROWS_QUERIES + t]                                 \
                          : largest;                                                               \
          }                                                                                        \
          part_maxima[t] = largest;                                                                \
        }                                                                                          \
        group_barrier();                                                                           \
        f32 sums[4 * EIGHT];                                                                       \
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
