// attention_rows_TYPE: a threadgroup has 64 queries of one key/value head, neighbours in [rows,
// heads of the group], and takes those of each sequence together. Keys come in parts of 512:
//   scores  a thread has eight queries and eight keys of one half of the part, then of the other;
//           sixteen dimensions of queries and keys at a time pass through shared memory. Scores go
//           to memory.
//   values  sixteen keys at a time pass through shared memory, values and what they weigh for each
//           query, whose sum a thread adds up that makes the weights: a lane of the sum's order. A
//           thread has eight queries and eight dimensions.
// Types of two bytes stay what they are in shared memory: a load takes as long as sixteen
// multiply-adds. What came of the parts before lies in y. What is next is on its way while one is
// multiplied. 25 KiB of shared memory. Bound by multiply-adds; with heads of less than 256 values,
// threads without dimensions wait.

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/kernels/attention.h"
#include "backend/gpu/kernels/kv_keys.h"
#include "backend/gpu/kernels/lanes.h"

namespace hearth::backend::gpu {

#define EIGHT 8u          // queries of a thread, keys of a thread, dimensions of a thread
#define QUERY_STRIDE 68u  // of floats for each query; different banks
#define KEY_DIMS 16u
#define HALF_KEYS 256u      // of a part: those of all threads
#define PAIR_STRIDE 132u    // of words for pairs of keys; different banks
#define BROUGHT_EIGHTS 2u   // of dimensions of a key, or of a value, that a thread brings
#define BROUGHT_QUERIES 4u  // numbers of queries that a thread brings
#define BROUGHT_SCORES 4u

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

/// Whether shared memory has values of a type as they are stored.
DEVICE_FN bool is_halves(u32 type) {
  return type == KV_F16 || type == KV_BF16;
}

/// The thread's queries, and its keys of a half or dimensions: eight neighbours, or where they are
/// floats in shared memory two times four that are 32 apart, which meet different banks.
struct OwnPlace {
  u32 query;
  u32 first;
};

DEVICE_FN OwnPlace own_place(u32 type, u32 thread_id) {
  const u32 lane = thread_id % 32;
  const u32 simdgroup = thread_id / 32;
  const OwnPlace place = {simdgroup / 4 * 32 + lane / 8 * EIGHT,
                          simdgroup % 4 * 64 + lane % 8 * (is_halves(type) ? 8u : 4u)};
  return place;
}

/// How far own key or dimension i is from the first.
DEVICE_FN u32 own_offset(u32 type, u32 i) {
  return is_halves(type) || i < 4u ? i : i + 28u;
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

/// The thread's eight of a row of keys or values, whose first is `first`.
DEVICE_FN void load_own_cells(u32 type, SHARED(f32) row, u32 first, THREAD(f32) own) {
  if (is_halves(type)) {
    const u32x4 four = load4(as_words(row) + first / 2);
    UNROLL for (u32 i = 0; i < EIGHT; ++i) {
      own[i] = kv_part_value(type, word_part(four, i / 2), i % 2, 1.0f);
    }
  } else {
    load_own(row + first, 32, own);
  }
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

/// Floats from row to row of keys in shared memory.
DEVICE_FN u32 key_stride(u32 type) {
  return is_halves(type) ? PAIR_STRIDE : HALF_KEYS;
}

/// Eight dimensions of key thread_id of a half to rows of cells [KEY_DIMS, key_stride]. Of halves,
/// the threads of two keys have four dimensions of both.
DEVICE_FN void store_key(u32 type, THREAD_REF(const RawEight) raw, u32 thread_id,
                         SHARED(f32) cells) {
  if (is_halves(type)) {
    const bool is_odd = thread_id % 2 != 0u;
    const u32 first = shuffle_xor(is_odd ? raw.low.x : raw.low.z, 1);
    const u32 second = shuffle_xor(is_odd ? raw.low.y : raw.low.w, 1);
    const u32 even_key[2] = {is_odd ? first : raw.low.x, is_odd ? second : raw.low.y};
    const u32 odd_key[2] = {is_odd ? raw.low.z : first, is_odd ? raw.low.w : second};
    SHARED(u32) to = as_words(cells) + ((is_odd ? 4u : 0u) * PAIR_STRIDE + thread_id / 2);
    UNROLL for (u32 i = 0; i < 2; ++i) {
      to[2 * i * PAIR_STRIDE] = pick_bytes(even_key[i], odd_key[i], 0x5410u);
      to[(2 * i + 1) * PAIR_STRIDE] = pick_bytes(even_key[i], odd_key[i], 0x7632u);
    }
  } else {
    UNROLL for (u32 i = 0; i < EIGHT; ++i) {
      cells[i * HALF_KEYS + thread_id] = value_of_eight(type, raw, i);
    }
  }
}

/// KEY_DIMS dimensions more of the thread's 64 dots. q [KEY_DIMS, QUERY_STRIDE], k [KEY_DIMS,
/// key_stride].
DEVICE_FN void add_dots(u32 type, SHARED(const f32) q, SHARED(f32) k, OwnPlace own,
                        THREAD(f32) dots) {
  UNROLL for (u32 d = 0; d < KEY_DIMS; ++d) {
    f32 queries[EIGHT];
    f32 keys[EIGHT];
    load_own(q + (d * QUERY_STRIDE + own.query), 4, queries);
    load_own_cells(type, k + d * key_stride(type), own.first, keys);
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
DEVICE_FN void store_scores(u32 type, u32 start, u32 first_key, f32 scale, bool is_seen,
                            OwnPlace own, SHARED(const u32) begins, SHARED(const u32) ends,
                            SHARED(f32) maxima, DEVICE(f32) scores, u32 lane, THREAD(f32) dots) {
  UNROLL for (u32 i = 0; i < EIGHT; ++i) {
    f32 maximum = f32_of_bits(0xff800000u);  // minus infinity, which every score beats
    if (is_seen) {
      const u32 begin = begins[own.query + i];
      const u32 end = ends[own.query + i];
      UNROLL for (u32 j = 0; j < EIGHT; ++j) {
        const u32 key = start + first_key + own_offset(type, j);
        const f32 score = dots[EIGHT * i + j] * scale;
        dots[EIGHT * i + j] = score;
        maximum = key >= begin && key < end && score > maximum ? score : maximum;
      }
      UNROLL for (u32 j = 0; j < EIGHT; j += 4) {
        store4(scores + score_place(first_key + own_offset(type, j), own.query + i),
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
  const OwnPlace own = own_place(type, thread_id);
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
      store_key(type, next[j], thread_id, k_cells + j * EIGHT * key_stride(type));
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
      add_dots(type, q_cells, k_cells, own, dots);
    }
  }
  store_scores(type, range.start, first - range.start + own.first, scale, is_seen, own, begins,
               ends, maxima + thread_id / 32 % 4 * ATTENTION_ROWS_QUERIES, scores, thread_id % 32,
               dots);
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

/// Values 8 i ... of 16 keys to cells.
DEVICE_FN void store_value(u32 type, THREAD_REF(const RawEight) raw, u32 i, SHARED(f32) cells) {
  if (is_halves(type)) {
    store4(as_words(cells) + 4 * i, raw.low);
  } else {
    store4(cells + EIGHT * i, make4(value_of_eight(type, raw, 0), value_of_eight(type, raw, 1),
                                    value_of_eight(type, raw, 2), value_of_eight(type, raw, 3)));
    store4(cells + (EIGHT * i + 4),
           make4(value_of_eight(type, raw, 4), value_of_eight(type, raw, 5),
                 value_of_eight(type, raw, 6), value_of_eight(type, raw, 7)));
  }
}

/// Floats from key to key of values in shared memory.
DEVICE_FN u32 value_stride(u32 type, u32 head_dim) {
  return is_halves(type) ? head_dim / 2 : head_dim;
}

/// Adds the weighted values of 16 keys. weights [16, QUERY_STRIDE] from the thread's queries on,
/// cells [16, value_stride].
DEVICE_FN void add_sixteen_values(u32 type, SHARED(const f32) weights, SHARED(f32) cells,
                                  u32 head_dim, u32 first_dim, THREAD(f32) sums) {
  UNROLL for (u32 key = 0; key < ATTENTION_BLOCK_KEYS; ++key) {
    f32 own[EIGHT];
    f32 value[EIGHT];
    load_own(weights + key * QUERY_STRIDE, 4, own);
    load_own_cells(type, cells + key * value_stride(type, head_dim), first_dim, value);
    UNROLL for (u32 i = 0; i < EIGHT; ++i) {
      UNROLL for (u32 j = 0; j < EIGHT; ++j) {
        sums[EIGHT * i + j] = fma_f32(own[i], value[j], sums[EIGHT * i + j]);
      }
    }
  }
}

/// The same where not every query sees all of the keys, which begin at `first`.
DEVICE_FN void add_seen_of_sixteen(u32 type, SHARED(const f32) weights, SHARED(f32) cells,
                                   u32 head_dim, u32 first_dim, u32 first, SHARED(const u32) begins,
                                   SHARED(const u32) ends, THREAD(f32) sums) {
  for (u32 key = 0; key < ATTENTION_BLOCK_KEYS; ++key) {
    f32 value[EIGHT];
    load_own_cells(type, cells + key * value_stride(type, head_dim), first_dim, value);
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
  const OwnPlace own = own_place(type, thread_id);
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
        add_sixteen_values(type, weights + own.query, cells, head.head_dim, own.first, sums);
      } else {
        add_seen_of_sixteen(type, weights + own.query, cells, head.head_dim, own.first, key,
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

/// Folds the thread's sums into y, and divides them after the last part. Dimensions lie together by
/// fours.
DEVICE_FN void fold_values(u32 type, THREAD(const f32) sums, OwnPlace own, u32 head_dim,
                           SHARED(const u32) places, SHARED(const u32) folds,
                           SHARED(const f32) keeps, SHARED(const f32) takes,
                           SHARED(const f32) totals, DEVICE(f32) y) {
  UNROLL for (u32 i = 0; i < 2 * EIGHT; ++i) {
    const u32 query = own.query + i / 2;
    const u32 fold = folds[query];
    const u32 dim = own.first + own_offset(type, i % 2 * 4);
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
    const OwnPlace own = own_place(type, t);                                                       \
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
        fold_values(type, sums, own, p.head_dim, places, folds, keeps, takes, totals, y);          \
      }                                                                                            \
    }                                                                                              \
  }

ATTENTION_ROWS_KERNEL(attention_rows_f32, KV_F32)
ATTENTION_ROWS_KERNEL(attention_rows_f16, KV_F16)
ATTENTION_ROWS_KERNEL(attention_rows_bf16, KV_BF16)
ATTENTION_ROWS_KERNEL(attention_rows_q8_0, KV_Q8_0)
ATTENTION_ROWS_KERNEL(attention_rows_q4_0, KV_Q4_0)

}  // namespace hearth::backend::gpu
