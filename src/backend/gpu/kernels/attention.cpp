// attention_TYPE, for many rows: a threadgroup serves up to eight query heads of one key/value head
// of a row, in tiles of four heads and 128 threads. Keys come in parts of 512, each of which passes
// through:
//   scores   a thread takes two keys at a time and four heads, dimension by dimension: words of 16
//            bytes of keys from memory, queries from shared memory
//   weights  each thread its own, once the maxima of all are known
//   sums     a thread per lane of the sum, sixteen for each head
//   values   a thread takes one dimension, or two that are 128 apart, of four heads, and adds the
//            positions in ascending order
// Shared memory: 25 KiB. Bound by memory for long contexts; keys and values are read once for all
// heads served.

#include "backend/gpu/kernels/attention.h"

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/kernels/kv_keys.h"
#include "backend/gpu/kernels/lanes.h"

namespace hearth::backend::gpu {

#define TILE_THREADS 128u
#define KEYS_AT_ONCE 2u
#define DIMS_AT_ONCE 2u
#define WORDS_AT_ONCE 4u  // at most

/// Softmax over some keys, not yet normalised: of four heads, the thread's dimensions.
struct TilePartial {
  f32x4 maxima;  // heads side by side
  f32x4 sums;
  f32x4 values[DIMS_AT_ONCE];
};

DEVICE_FN f32x4 max4(f32x4 a, f32x4 b) {
  return make4(b.x > a.x ? b.x : a.x, b.y > a.y ? b.y : a.y, b.z > a.z ? b.z : a.z,
               b.w > a.w ? b.w : a.w);
}
DEVICE_FN f32x4 exp4(f32x4 x) {
  return make4(exp_f32(x.x), exp_f32(x.y), exp_f32(x.z), exp_f32(x.w));
}
/// a * b + c, each rounded once.
DEVICE_FN f32x4 fma4_each(f32x4 a, f32x4 b, f32x4 c) {
  return make4(fma_f32(a.x, b.x, c.x), fma_f32(a.y, b.y, c.y), fma_f32(a.z, b.z, c.z),
               fma_f32(a.w, b.w, c.w));
}

/// Scores of keys key and key + 128 against four heads. queries [head_dim, ATTENTION_MAX_HEADS]
/// from the tile's first head on; scores [ATTENTION_PART_KEYS, ATTENTION_MAX_HEADS] likewise.
/// Keys out of sight are computed as the first one in sight, and dropped.
DEVICE_FN void score_two_keys(u32 type, KvHead head, DEVICE(const i32) table, KeyRange range,
                              u32 key, f32 scale, DEVICE(const u8) keys, SHARED(const f32) queries,
                              SHARED(f32) scores, THREAD_REF(f32x4) maxima) {
  u64 panels[KEYS_AT_ONCE];
  u32 slots[KEYS_AT_ONCE];
  f32x4 dots[KEYS_AT_ONCE];
  UNROLL for (u32 j = 0; j < KEYS_AT_ONCE; ++j) {
    const u32 each = key + j * TILE_THREADS;
    const u32 seen = each >= range.begin && each < range.end ? each : range.begin;
    panels[j] = panel_start(type, head, table, seen);
    slots[j] = seen % ATTENTION_BLOCK_KEYS;
    dots[j] = make4(0.0f, 0.0f, 0.0f, 0.0f);
  }
  const u32 n_word = kv_word_values(type);
  const u32 n_words = head.head_dim / n_word;
  const u32 n_at_once = n_word > 8u ? WORDS_AT_ONCE / 2u : WORDS_AT_ONCE;
  for (u32 first = 0; first < n_words; first += n_at_once) {
    u32x4 now[WORDS_AT_ONCE][KEYS_AT_ONCE];
    f32 scales[WORDS_AT_ONCE][KEYS_AT_ONCE];
    UNROLL for (u32 w = 0; w < n_at_once; ++w) {
      const u32 word = min_u32(first + w, n_words - 1u);
      UNROLL for (u32 j = 0; j < KEYS_AT_ONCE; ++j) {
        now[w][j] =
            load4(words(keys + (panels[j] + 16 * (word * ATTENTION_BLOCK_KEYS + slots[j]))));
        scales[w][j] = 1.0f;
        if (type >= KV_Q8_0) {
          const u32 group = word * n_word / 32;
          scales[w][j] = kv_scale(keys + (panels[j] + kv_cell_bytes(type, head.head_dim)),
                                  group * ATTENTION_BLOCK_KEYS + slots[j]);
        }
      }
    }
    UNROLL for (u32 w = 0; w < n_at_once; ++w) {
      if (first + w < n_words) {
        UNROLL for (u32 part = 0; part < 4; ++part) {
          UNROLL for (u32 i = 0; i < n_word / 4; ++i) {
            const u32 d = (first + w) * n_word + part * (n_word / 4) + i;
            const f32x4 q = load4(queries + d * ATTENTION_MAX_HEADS);
            UNROLL for (u32 j = 0; j < KEYS_AT_ONCE; ++j) {
              const f32 value = kv_part_value(type, word_part(now[w][j], part), i, scales[w][j]);
              dots[j] = fma4(q, value, dots[j]);
            }
          }
        }
      }
    }
  }
  UNROLL for (u32 j = 0; j < KEYS_AT_ONCE; ++j) {
    const u32 each = key + j * TILE_THREADS;
    if (each >= range.begin && each < range.end) {
      const f32x4 score = dots[j] * scale;
      store4(scores + (each - range.start) * ATTENTION_MAX_HEADS, score);
      maxima = max4(maxima, score);
    }
  }
}

/// Sum of the weights of head thread_id / 16, lane by lane of the sum; by whole simdgroups.
DEVICE_FN f32 sum_of_weights(SHARED(const f32) weights, KeyRange range, u32 thread_id) {
  const u32 lane = thread_id % N_LANES;
  f32 partial = 0.0f;
  // Parts begin at multiples of 16.
  const u32 first = range.begin + (lane - range.begin) % N_LANES;
  for (u32 key = first; key < range.end; key += N_LANES) {
    partial += weights[(key - range.start) * ATTENTION_MAX_HEADS + thread_id / N_LANES];
  }
  return sum_lanes(partial);
}

/// Adds the weighted values of keys [range.begin, range.end) of a block to the dimensions d and
/// d + 128 that the head has.
DEVICE_FN void add_values(u32 type, KvHead head, DEVICE(const u8) panel, KeyRange range, u32 d,
                          SHARED(const f32) weights, THREAD_REF(TilePartial) partial) {
  for (u32 key = range.begin; key < range.end; ++key) {
    const f32x4 weight = load4(weights + (key - range.start) * ATTENTION_MAX_HEADS);
    const u32 slot = key % ATTENTION_BLOCK_KEYS;
    UNROLL for (u32 j = 0; j < DIMS_AT_ONCE; ++j) {
      if (d + j * TILE_THREADS < head.head_dim) {
        partial.values[j] =
            fma4(weight, kv_value(type, panel, head.head_dim, slot, d + j * TILE_THREADS),
                 partial.values[j]);
      }
    }
  }
}

/// The same for a whole block, whose values are asked for before the first is used.
DEVICE_FN void add_block_values(u32 type, KvHead head, DEVICE(const u8) panel, u32 d,
                                SHARED(const f32) weights, THREAD_REF(TilePartial) partial) {
  if (d >= head.head_dim) {
    return;
  }
  f32 block[DIMS_AT_ONCE][ATTENTION_BLOCK_KEYS];
  UNROLL for (u32 j = 0; j < DIMS_AT_ONCE; ++j) {
    const u32 column = d + j * TILE_THREADS < head.head_dim ? d + j * TILE_THREADS : d;
    UNROLL for (u32 key = 0; key < ATTENTION_BLOCK_KEYS; ++key) {
      block[j][key] = kv_value(type, panel, head.head_dim, key, column);
    }
  }
  UNROLL for (u32 key = 0; key < ATTENTION_BLOCK_KEYS; ++key) {
    const f32x4 weight = load4(weights + key * ATTENTION_MAX_HEADS);
    UNROLL for (u32 j = 0; j < DIMS_AT_ONCE; ++j) {
      partial.values[j] = fma4(weight, block[j][key], partial.values[j]);
    }
  }
}

/// Attention of the caller's tile over the keys of one part. In shared memory, from the first head
/// that the threadgroup serves on: queries [head_dim, ATTENTION_MAX_HEADS], scores
/// [ATTENTION_PART_KEYS, ATTENTION_MAX_HEADS], maxima [simdgroups, 4], sums [ATTENTION_MAX_HEADS].
DEVICE_FN TilePartial attend_part(u32 type, KvHead head, DEVICE(const i32) table, KeyRange range,
                                  f32 scale, DEVICE(const u8) keys, DEVICE(const u8) values,
                                  SHARED(const f32) queries, SHARED(f32) scores, SHARED(f32) maxima,
                                  SHARED(f32) sums, u32 thread_id, u32 n_threads) {
  const u32 tile = thread_id / TILE_THREADS;
  const u32 tile_head = tile * ATTENTION_TILE_HEADS;
  const u32 lane = thread_id % TILE_THREADS;
  const u32 round_keys = TILE_THREADS * KEYS_AT_ONCE;
  const f32 lowest = f32_of_bits(0xff800000u);  // minus infinity, which every score beats
  TilePartial partial;
  partial.maxima = make4(lowest, lowest, lowest, lowest);
  for (u32 first = range.start; first < range.end; first += round_keys) {
    if (first + round_keys > range.begin) {
      score_two_keys(type, head, table, range, first + lane, scale, keys, queries + tile_head,
                     scores + tile_head, partial.maxima);
    }
  }
  partial.maxima.x = simd_max_f32(partial.maxima.x);
  partial.maxima.y = simd_max_f32(partial.maxima.y);
  partial.maxima.z = simd_max_f32(partial.maxima.z);
  partial.maxima.w = simd_max_f32(partial.maxima.w);
  if (thread_id % 32 == 0) {
    store4(maxima + thread_id / 32 * 4, partial.maxima);
  }
  group_barrier();
  UNROLL for (u32 simdgroup = 0; simdgroup < TILE_THREADS / 32; ++simdgroup) {
    partial.maxima =
        max4(partial.maxima, load4(maxima + (tile * (TILE_THREADS / 32) + simdgroup) * 4));
  }
  for (u32 key = range.start + lane; key < range.end; key += TILE_THREADS) {
    if (key >= range.begin) {
      SHARED(f32) own = scores + ((key - range.start) * ATTENTION_MAX_HEADS + tile_head);
      store4(own, exp4(load4(own) - partial.maxima));
    }
  }
  group_barrier();
  if (thread_id < n_threads / TILE_THREADS * ATTENTION_TILE_HEADS * N_LANES) {
    const f32 sum = sum_of_weights(scores, range, thread_id);
    if (thread_id % N_LANES == 0) {
      sums[thread_id / N_LANES] = sum;
    }
  }
  UNROLL for (u32 j = 0; j < DIMS_AT_ONCE; ++j) {
    partial.values[j] = make4(0.0f, 0.0f, 0.0f, 0.0f);
  }
  u64 next_panel = panel_start(type, head, table, range.begin);
  for (u32 key = range.begin; key < range.end;) {
    DEVICE(const u8) panel = values + next_panel;
    const u32 block_end = (key / ATTENTION_BLOCK_KEYS + 1) * ATTENTION_BLOCK_KEYS;
    KeyRange block = range;
    block.begin = key;
    block.end = min_u32(block_end, range.end);
    if (block_end < range.end) {
      next_panel = panel_start(type, head, table, block_end);
    }
    if (block.end - block.begin == ATTENTION_BLOCK_KEYS) {
      add_block_values(type, head, panel, lane,
                       scores + ((key - range.start) * ATTENTION_MAX_HEADS + tile_head), partial);
    } else {
      add_values(type, head, panel, block, lane, scores + tile_head, partial);
    }
    key = block_end;
  }
  group_barrier();
  partial.sums = load4(sums + tile_head);
  return partial;
}

/// Folds the next part into what the earlier ones gave.
DEVICE_FN void fold_part(THREAD_REF(TilePartial) total, THREAD_REF(const TilePartial) next) {
  const f32x4 maxima = max4(total.maxima, next.maxima);
  const f32x4 keep = exp4(total.maxima - maxima);
  const f32x4 take = exp4(next.maxima - maxima);
  total.maxima = maxima;
  total.sums = fma4_each(take, next.sums, keep * total.sums);
  UNROLL for (u32 j = 0; j < DIMS_AT_ONCE; ++j) {
    total.values[j] = fma4_each(take, next.values[j], keep * total.values[j]);
  }
}

DEVICE_FN f32 head_of_tile(f32x4 heads, u32 i) {
  return i == 0u ? heads.x : i == 1u ? heads.y : i == 2u ? heads.z : heads.w;
}

/// y: of the first head served.
DEVICE_FN void write_tile(PARAMS(AttentionParams) p, THREAD_REF(const TilePartial) result,
                          u32 n_heads, u32 thread_id, DEVICE(f32) y) {
  const u32 tile_head = thread_id / TILE_THREADS * ATTENTION_TILE_HEADS;
  const u32 lane = thread_id % TILE_THREADS;
  UNROLL for (u32 i = 0; i < ATTENTION_TILE_HEADS; ++i) {
    if (tile_head + i < n_heads) {
      DEVICE(f32) to = y + (tile_head + i) * p.head_dim;
      const f32 sum = head_of_tile(result.sums, i);
      UNROLL for (u32 j = 0; j < DIMS_AT_ONCE; ++j) {
        const u32 d = lane + j * TILE_THREADS;
        if (d < p.head_dim) {
          to[d] = head_of_tile(result.values[j], i) / sum;
        }
      }
    }
  }
}

/// One threadgroup: `heads_index` of the grid's second dimension. q and y: of the row.
DEVICE_FN void attend_row(u32 type, PARAMS(AttentionParams) p, u32 heads_index, u32 position,
                          DEVICE(const f32) q, DEVICE(const i32) table, DEVICE(const u8) keys,
                          DEVICE(const u8) values, DEVICE(f32) y, SHARED(f32) queries,
                          SHARED(f32) scores, SHARED(f32) maxima, SHARED(f32) sums, u32 thread_id,
                          u32 n_threads) {
  const u32 first_key = first_key_seen(position, p.window);
  const u32 first_part = first_key / ATTENTION_PART_KEYS;
  const u32 last_part = position / ATTENTION_PART_KEYS;
  const u32 served = n_threads / TILE_THREADS * ATTENTION_TILE_HEADS;
  const HeadRun run = head_run(p, heads_index, served);
  const u32 n_heads = run.n_heads;
  const KvHead head = {p.head_dim, p.n_kv_heads, run.kv_head};
  DEVICE(const f32) q_heads = q + u64(run.first_head) * p.head_dim;
  for (u32 i = thread_id; i < served * p.head_dim; i += n_threads) {
    queries[i % p.head_dim * ATTENTION_MAX_HEADS + i / p.head_dim] =
        i < n_heads * p.head_dim ? q_heads[i] : 0.0f;
  }
  group_barrier();

  TilePartial total;
  for (u32 each = first_part; each <= last_part; ++each) {
    const KeyRange range = keys_of_part(each, position, first_key);
    const TilePartial next = attend_part(type, head, table, range, p.scale, keys, values, queries,
                                         scores, maxima, sums, thread_id, n_threads);
    if (each == first_part) {
      total = next;
    } else {
      fold_part(total, next);
    }
  }
  write_tile(p, total, n_heads, thread_id, y + run.first_head * p.head_dim);
}

#define ATTENTION_KERNEL(name, type)                                                             \
  KERNEL(name, 256, AttentionParams, BUFFER(0, const u32, counts), BUFFER(1, const f32, q),      \
         BUFFER(2, const i32, positions), BUFFER(3, const i32, sequences),                       \
         BUFFER(4, const i32, tables), BUFFER(5, const u8, keys), BUFFER(6, const u8, values),   \
         BUFFER(7, f32, y)) {                                                                    \
    SHARED_ARRAY(f32, queries, (ATTENTION_MAX_HEAD_DIM * ATTENTION_MAX_HEADS));                  \
    SHARED_ARRAY(f32, scores, (ATTENTION_PART_KEYS * ATTENTION_MAX_HEADS));                      \
    SHARED_ARRAY(f32, maxima, (256 / 32 * ATTENTION_TILE_HEADS));                                \
    SHARED_ARRAY(f32, sums, ATTENTION_MAX_HEADS);                                                \
    const u32 row = k_group.z;                                                                   \
    if (row < counts[0]) {                                                                       \
      const u64 features = p.n_heads * p.head_dim;                                               \
      attend_row(type, p, k_group.y, u32(positions[row]), q + row * features,                    \
                 tables + u64(u32(sequences[row])) * p.table_stride, keys, values,               \
                 y + row * features, queries, scores, maxima, sums, k_thread.x, k_group_size.x); \
    }                                                                                            \
  }

ATTENTION_KERNEL(attention_f32, KV_F32)
ATTENTION_KERNEL(attention_f16, KV_F16)
ATTENTION_KERNEL(attention_bf16, KV_BF16)
ATTENTION_KERNEL(attention_q8_0, KV_Q8_0)
ATTENTION_KERNEL(attention_q4_0, KV_Q4_0)

}  // namespace hearth::backend::gpu
