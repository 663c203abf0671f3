// attention_scores_TYPE, by four simdgroups that take keys. While few tiles of 32 keys are all, a
// threadgroup takes one: its keys pass through shared memory, a lane takes one of them, a simdgroup
// a quarter of the heads. Of more keys, a lane takes two, or four, and four heads, so that what it
// reads of queries serves as many keys; it asks for some of the keys before it needs them. Where
// the row's own key is not in the cache yet, the simdgroups form the queries first; the threadgroup
// that has the key forms that too, by a fifth simdgroup, and stores it with the value. Shared
// memory: 27 KiB. Bound by latency for short contexts, by memory for long ones.

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/kernels/attention.h"
#include "backend/gpu/kernels/attention_cells.h"
#include "backend/gpu/kernels/attention_heads.h"
#include "backend/gpu/kernels/kv_keys.h"

namespace hearth::backend::gpu {

#define SCORE_SIMDGROUPS 4u  // that take keys
#define SCORE_HEADS 4u       // side by side in shared memory, and of a lane with several keys
#define QUERY_QUADS 4u       // of four values of ready queries, that a thread copies
#define TILE_KEYS 32u
#define TILE_WORDS 32u  // of a key, that are in shared memory
#define OWN_WORDS (TILE_WORDS / SCORE_SIMDGROUPS)
#define LONG_KEYS 4u    // of a lane, 32 apart, at most
#define LONG_EIGHTS 4u  // of a key, asked for before the first is used

/// Where value `d` of head h of a run is among the queries, [2][ATTENTION_MAX_HEAD_DIM][4].
DEVICE_FN u32 query_place(u32 h, u32 d) {
  return (h / SCORE_HEADS * ATTENTION_MAX_HEAD_DIM + d) * SCORE_HEADS + h % SCORE_HEADS;
}

/// A lane's key.
struct KeyPlace {
  u64 panel;  // byte
  u32 slot;
};

DEVICE_FN KeyPlace key_place(u32 type, KvHead head, DEVICE(const i32) table, u32 key) {
  const KeyPlace place = {panel_start(type, head, table, key), key % ATTENTION_BLOCK_KEYS};
  return place;
}

/// A thread's share of a tile: words k_simdgroup + 4 i of the lane's key.
struct TileWords {
  u32x4 words[OWN_WORDS];
};

/// From word `first` of the keys on.
DEVICE_FN TileWords load_tile_words(u32 type, u32 head_dim, bool has_key, KeyPlace place, u32 first,
                                    u32 simdgroup, DEVICE(const u8) keys) {
  TileWords own;
  UNROLL for (u32 i = 0; i < OWN_WORDS; ++i) {
    const u32 word = first + simdgroup + SCORE_SIMDGROUPS * i;
    const u32x4 nothing = {0, 0, 0, 0};
    own.words[i] = nothing;
    if (has_key && word < head_dim / kv_word_values(type)) {
      own.words[i] =
          load4(words(keys + (place.panel + 16 * (word * ATTENTION_BLOCK_KEYS + place.slot))));
    }
  }
  return own;
}

/// To tile [TILE_WORDS][TILE_KEYS] of words.
DEVICE_FN void store_tile_words(THREAD_REF(const TileWords) own, u32 simdgroup, u32 lane,
                                SHARED(u32) tile) {
  UNROLL for (u32 i = 0; i < OWN_WORDS; ++i) {
    store4(tile + 4 * ((simdgroup + SCORE_SIMDGROUPS * i) * TILE_KEYS + lane), own.words[i]);
  }
}

/// The scale of group k_simdgroup + 4 i of 32 values of the lane's key, to [groups][TILE_KEYS].
DEVICE_FN void bring_tile_scales(u32 type, u32 head_dim, bool has_key, KeyPlace place,
                                 u32 simdgroup, u32 lane, DEVICE(const u8) keys,
                                 SHARED(f32) scales) {
  DEVICE(const u8) from = keys + (place.panel + kv_cell_bytes(type, head_dim));
  for (u32 group = simdgroup; group < head_dim / 32; group += SCORE_SIMDGROUPS) {
    scales[group * TILE_KEYS + lane] =
        has_key ? kv_scale(from, group * ATTENTION_BLOCK_KEYS + place.slot) : 0.0f;
  }
}

/// Eight dimensions, those from 8 * eight on, of the lane's key in a tile, with two queries.
struct TileEight {
  RawEight key;
  u32x2 queries[EIGHT];
};

/// `queries`: of the two heads, where the tile's words begin.
DEVICE_FN TileEight load_tile_eight(u32 type, SHARED(const u32) tile, SHARED(const f32) scales,
                                    SHARED(const u32) queries, u32 eight, u32 lane) {
  const u32x4 no_words = {0, 0, 0, 0};
  TileEight own;
  own.key.low = no_words;
  own.key.high = no_words;
  own.key.scale = 1.0f;
  const u32 n_word = kv_word_values(type);
  SHARED(const u32) from = tile + 4 * (eight * EIGHT / n_word * TILE_KEYS + lane);
  if (type == KV_Q4_0) {
    own.key.low.x = from[eight % 4];
  } else if (type == KV_Q8_0) {
    const u32x2 both = load2(from + eight % 2 * 2);
    own.key.low.x = both.x;
    own.key.low.y = both.y;
  } else {
    own.key.low = load4(from);
  }
  if (type == KV_F32) {
    own.key.high = load4(from + 4 * TILE_KEYS);
  }
  if (type >= KV_Q8_0) {
    own.key.scale = scales[eight / 4 * TILE_KEYS + lane];
  }
  UNROLL for (u32 i = 0; i < EIGHT; ++i) {
    own.queries[i] = load2(queries + (eight * EIGHT + i) * SCORE_HEADS);
  }
  return own;
}

/// Dots of the lane's key with two queries.
struct TwoDots {
  f32 first;
  f32 second;
};

DEVICE_FN void add_tile_eight(u32 type, THREAD_REF(const TileEight) own, THREAD_REF(TwoDots) dots) {
  UNROLL for (u32 i = 0; i < EIGHT; ++i) {
    const f32 value = value_of_eight(type, own.key, i);
    dots.first = fma_f32(f32_of_bits(own.queries[i].x), value, dots.first);
    dots.second = fma_f32(f32_of_bits(own.queries[i].y), value, dots.second);
  }
}

/// `n` eights more, an even number; what comes next is read while some is added.
DEVICE_FN void add_tile(u32 type, u32 n, SHARED(const u32) tile, SHARED(const f32) scales,
                        SHARED(const u32) queries, u32 lane, THREAD_REF(TwoDots) dots) {
  TileEight even = load_tile_eight(type, tile, scales, queries, 0, lane);
  KEEP_LOOP for (u32 eight = 0; eight < n; eight += 2) {
    const TileEight odd = load_tile_eight(type, tile, scales, queries, eight + 1, lane);
    add_tile_eight(type, even, dots);
    even = load_tile_eight(type, tile, scales, queries, eight + 2 < n ? eight + 2 : 0u, lane);
    add_tile_eight(type, odd, dots);
  }
}

/// Of some keys of a lane eight dimensions.
struct LongEight {
  RawEight keys[LONG_KEYS];
};

/// Those from d on of n keys.
DEVICE_FN LongEight load_long(u32 type, u32 n, THREAD(const u64) panels, DEVICE(const u8) keys,
                              u32 head_dim, u32 slot, u32 d) {
  LongEight eight;
  UNROLL for (u32 j = 0; j < n; ++j) {
    eight.keys[j] = load_key(type, keys + panels[j], head_dim, slot, d);
  }
  return eight;
}

/// Adds them to dots with four queries; queries: from these dimensions on.
DEVICE_FN void add_long(u32 type, u32 n, THREAD_REF(const LongEight) eight,
                        SHARED(const f32) queries, THREAD(f32x4) dots) {
  UNROLL for (u32 i = 0; i < EIGHT; ++i) {
    const f32x4 four = load4(queries + i * SCORE_HEADS);
    UNROLL for (u32 j = 0; j < n; ++j) {
      dots[j] = fma4(four, value_of_eight(type, eight.keys[j], i), dots[j]);
    }
  }
}

/// Scores of n keys of the lane, 32 apart from `key` on, against n_heads heads, of which up to four
/// count; queries: of these. `to`: the scores of the first of them.
DEVICE_FN void score_long(u32 type, u32 n, PARAMS(AttentionParams) p, KvHead head,
                          DEVICE(const i32) table, u32 key, u32 first_key, u32 position,
                          u32 n_heads, DEVICE(const u8) keys, SHARED(const f32) queries,
                          DEVICE(f32) to) {
  u64 panels[LONG_KEYS];
  f32x4 dots[LONG_KEYS];
  const u32 slot = key % ATTENTION_BLOCK_KEYS;
  const u32 n_ahead = type == KV_F32 ? LONG_EIGHTS / 2 : LONG_EIGHTS;
  const u32 n_whole = head.head_dim / (EIGHT * n_ahead) * (EIGHT * n_ahead);
  UNROLL for (u32 j = 0; j < n; ++j) {
    const u32 seen = min_u32(max_u32(key + 32 * j, first_key), position);
    panels[j] = panel_start(type, head, table, seen);
    dots[j] = make4(0.0f, 0.0f, 0.0f, 0.0f);
  }
  LongEight ahead[LONG_EIGHTS];
  UNROLL for (u32 a = 0; a < n_ahead; ++a) {
    if (EIGHT * a < n_whole) {
      ahead[a] = load_long(type, n, panels, keys, head.head_dim, slot, EIGHT * a);
    }
  }
  KEEP_LOOP for (u32 begin = 0; begin < n_whole; begin += EIGHT * n_ahead) {
    UNROLL for (u32 a = 0; a < n_ahead; ++a) {
      const u32 d = begin + EIGHT * a;
      add_long(type, n, ahead[a], queries + d * SCORE_HEADS, dots);
      if (d + EIGHT * n_ahead < n_whole) {
        ahead[a] = load_long(type, n, panels, keys, head.head_dim, slot, d + EIGHT * n_ahead);
      }
    }
  }
  KEEP_LOOP for (u32 d = n_whole; d < head.head_dim; d += EIGHT) {
    ahead[0] = load_long(type, n, panels, keys, head.head_dim, slot, d);
    add_long(type, n, ahead[0], queries + d * SCORE_HEADS, dots);
  }
  const u64 head_scores = u64(p.n_parts) * ATTENTION_PART_KEYS;
  UNROLL for (u32 j = 0; j < n; ++j) {
    const u32 each = key + 32 * j;
    if (each >= first_key && each <= position) {
      const f32 four[SCORE_HEADS] = {dots[j].x, dots[j].y, dots[j].z, dots[j].w};
      UNROLL for (u32 h = 0; h < SCORE_HEADS; ++h) {
        if (h < n_heads) {
          to[h * head_scores + each] = four[h] * p.scale;
        }
      }
    }
  }
}

/// Two query heads of a row as they come: of each the lane's share.
struct TwoHeads {
  HeadValues heads[2];
};

/// Of a row's heads from `first` on the first n, at most two.
DEVICE_FN TwoHeads load_two_queries(PARAMS(AttentionStoreParams) p, u32 n, DEVICE(const f32) first,
                                    u32 lane) {
  TwoHeads two;
  UNROLL for (u32 h = 0; h < 2; ++h) {
    two.heads[h] = load_head(first + h * p.q_period, h < n ? p.head_dim : 0u, lane);
  }
  return two;
}

/// Copies queries that are ready, n of them; those that are not there are zero.
DEVICE_FN void copy_queries(DEVICE(const f32) ready, u32 n, u32 head_dim, u32 thread_id,
                            SHARED(f32) queries) {
  f32x4 quads[QUERY_QUADS];
  UNROLL for (u32 i = 0; i < QUERY_QUADS; ++i) {
    const u32 at = 4 * (thread_id + ATTENTION_SCORE_THREADS * i);
    quads[i] = make4(0.0f, 0.0f, 0.0f, 0.0f);
    if (at < n * head_dim) {
      quads[i] = load4(ready + at);
    }
  }
  UNROLL for (u32 i = 0; i < QUERY_QUADS; ++i) {
    const u32 at = 4 * (thread_id + ATTENTION_SCORE_THREADS * i);
    const u32 head = at / head_dim;
    if (head < ATTENTION_MAX_HEADS) {
      SHARED(f32) to = queries + query_place(head, at % head_dim);
      to[0] = quads[i].x;
      to[SCORE_HEADS] = quads[i].y;
      to[2 * SCORE_HEADS] = quads[i].z;
      to[3 * SCORE_HEADS] = quads[i].w;
    }
  }
}

#define ATTENTION_SCORES_KERNEL(name, type, Cell, store)                                           \
  WIDE_EARLY_KERNEL(name, ATTENTION_SCORE_THREADS, AttentionScoresParams,                          \
                    BUFFER(0, const u32, counts), BUFFER(1, const f32, q),                         \
                    BUFFER(2, const f32, k), BUFFER(3, const f32, v),                              \
                    BUFFER(4, const f32, q_norm), BUFFER(5, const f32, k_norm),                    \
                    BUFFER(6, const f32, angles), BUFFER(7, const i32, positions),                 \
                    BUFFER(8, const i32, sequences), BUFFER(9, const i32, tables),                 \
                    BUFFER(10, Cell, keys), BUFFER(11, Cell, values), BUFFER(12, f32, scores)) {   \
    SHARED_ARRAY(f32, queries, ATTENTION_MAX_HEADS* ATTENTION_MAX_HEAD_DIM);                       \
    SHARED_ARRAY(u32, tile_words, 4 * TILE_WORDS * TILE_KEYS);                                     \
    SHARED_ARRAY(f32, tile_scales, ATTENTION_MAX_HEAD_DIM / 32 * TILE_KEYS);                       \
    SHARED_ARRAY(f32, ready_key, ATTENTION_MAX_HEAD_DIM);                                          \
    SHARED_ARRAY(f32, raw_value, ATTENTION_MAX_HEAD_DIM);                                          \
    const u32 row = k_group.y;                                                                     \
    const u32 head_dim = p.heads.head_dim;                                                         \
    const HeadRun run = head_run(p.attention, k_group.x, ATTENTION_MAX_HEADS);                     \
    const KvHead kv_head = {head_dim, p.heads.n_kv_heads, run.kv_head};                            \
    const u32 n_fours = run.n_heads > SCORE_HEADS ? 2u : 1u;                                       \
    u32 tile = 0;                                                                                  \
    u32 last_tile = 0;                                                                             \
    u32 position = 0;                                                                              \
    u32 first_key = 0;                                                                             \
    u32 tile_keys = TILE_KEYS;                                                                     \
    u32 long_keys = 0; /* of a lane */                                                             \
    if (row < counts[0]) {                                                                         \
      position = u32(positions[row]);                                                              \
      first_key = first_key_seen(position, p.attention.window);                                    \
      if (position / TILE_KEYS - first_key / TILE_KEYS >= p.attention.groups_at_once) {            \
        long_keys = LONG_KEYS / 2;                                                                 \
        tile_keys = 32 * SCORE_SIMDGROUPS / n_fours * long_keys;                                   \
        if (position / tile_keys - first_key / tile_keys >= p.attention.groups_at_once) {          \
          long_keys = LONG_KEYS;                                                                   \
          tile_keys *= 2;                                                                          \
        }                                                                                          \
      }                                                                                            \
      tile = first_key / tile_keys + k_group.z;                                                    \
      last_tile = position / tile_keys;                                                            \
    }                                                                                              \
    if (row >= counts[0] || tile > last_tile) {                                                    \
      wait_for_kernel_before();                                                                    \
      return;                                                                                      \
    }                                                                                              \
    DEVICE(const i32)                                                                              \
    table = tables + u64(u32(sequences[row])) * p.heads.table_stride;                              \
    const bool forms = p.attention.is_alone != 0u;                                                 \
    const bool stores = forms && (last_tile - tile) % k_grid_size.z == 0u;                         \
    const bool takes_keys = k_simdgroup < SCORE_SIMDGROUPS;                                        \
    const bool is_long = long_keys != 0u;                                                          \
    const u32 key = tile * TILE_KEYS + k_lane; /* of a tile of 32 */                               \
    const bool has_key = !is_long && takes_keys && key >= first_key && key <= position;            \
    const KeyPlace place = key_place(type, kv_head, table, has_key ? key : position);              \
    const bool is_early = forms && key != position;                                                \
    TileWords own = load_tile_words(type, head_dim, has_key && is_early, place, 0, k_simdgroup,    \
                                    bytes_of(keys));                                               \
    HeadForm form;                                                                                 \
    if (forms) {                                                                                   \
      form = load_form(p.heads, takes_keys, takes_keys ? q_norm : k_norm,                          \
                       angles + u64(row) * p.heads.rope.n_rot, k_lane);                            \
    }                                                                                              \
    if (type >= KV_Q8_0 && takes_keys && !is_long) {                                               \
      bring_tile_scales(type, head_dim, has_key&& is_early, place, k_simdgroup, k_lane,            \
                        bytes_of(keys), tile_scales);                                              \
    }                                                                                              \
    if (takes_keys && !is_long && forms) {                                                         \
      store_tile_words(own, k_simdgroup, k_lane, tile_words);                                      \
    }                                                                                              \
    wait_for_kernel_before();                                                                      \
    if (forms && takes_keys) {                                                                     \
      const u32 first = 2 * k_simdgroup;                                                           \
      const u32 head = run.first_head + first;                                                     \
      const TwoHeads two = load_two_queries(                                                       \
          p.heads, first < run.n_heads ? run.n_heads - first : 0u,                                 \
          q + (u64(row) * p.heads.q_features + head * p.heads.q_period + p.heads.q_start),         \
          k_lane);                                                                                 \
      UNROLL for (u32 h = 0; h < 2; ++h) {                                                         \
        form_head(p.heads, true, two.heads[h], form, queries + query_place(first + h, 0),          \
                  SCORE_HEADS, k_lane);                                                            \
      }                                                                                            \
    } else if (stores && !takes_keys) {                                                            \
      const u64 at = (u64(row) * p.heads.n_kv_heads + run.kv_head) * head_dim;                     \
      const HeadValues new_key = load_head(k + at, head_dim, k_lane);                              \
      const HeadValues new_value = load_head(v + at, head_dim, k_lane);                            \
      put_head(new_value, head_dim, k_lane, raw_value);                                            \
      form_head(p.heads, false, new_key, form, ready_key, 1, k_lane);                              \
      simdgroup_barrier();                                                                         \
      store(kv_place(p.heads, table, position, run.kv_head), ready_key, raw_value, keys, values,   \
            k_lane);                                                                               \
    } else if (!forms) {                                                                           \
      copy_queries(q + (u64(row) * p.heads.n_heads + run.first_head) * head_dim, run.n_heads,      \
                   head_dim, k_thread.x, queries);                                                 \
    }                                                                                              \
    if (stores || is_long) {                                                                       \
      group_barrier_device();                                                                      \
    }                                                                                              \
    const u64 first_record = (u64(row) * p.heads.n_heads + run.first_head) * p.attention.n_parts;  \
    if (is_long) {                                                                                 \
      const u32 four = k_simdgroup % n_fours * SCORE_HEADS;                                        \
      const u32 in_tile = k_simdgroup / n_fours * 32 * long_keys + k_lane;                         \
      DEVICE(f32)                                                                                  \
      to = scores + (first_record + four * p.attention.n_parts) * ATTENTION_PART_KEYS;             \
      SHARED(const f32) own_queries = queries + query_place(four, 0);                              \
      for (; tile <= last_tile && takes_keys; tile += k_grid_size.z) {                             \
        if (long_keys == LONG_KEYS) {                                                              \
          score_long(type, LONG_KEYS, p.attention, kv_head, table, tile* tile_keys + in_tile,      \
                     first_key, position, run.n_heads - four, bytes_of(keys), own_queries, to);    \
        } else {                                                                                   \
          score_long(type, LONG_KEYS / 2, p.attention, kv_head, table, tile * tile_keys + in_tile, \
                     first_key, position, run.n_heads - four, bytes_of(keys), own_queries, to);    \
        }                                                                                          \
      }                                                                                            \
      return;                                                                                      \
    }                                                                                              \
    const u32 n_words = head_dim / kv_word_values(type);                                           \
    TwoDots dots = {0.0f, 0.0f};                                                                   \
    for (u32 first = 0; first < n_words; first += TILE_WORDS) {                                    \
      if (first != 0u) {                                                                           \
        group_barrier();                                                                           \
      }                                                                                            \
      if (has_key && (!is_early || first != 0u)) {                                                 \
        own = load_tile_words(type, head_dim, true, place, first, k_simdgroup, bytes_of(keys));    \
        if (type >= KV_Q8_0) {                                                                     \
          bring_tile_scales(type, head_dim, true, place, k_simdgroup, k_lane, bytes_of(keys),      \
                            tile_scales);                                                          \
        }                                                                                          \
      }                                                                                            \
      if (takes_keys && (!is_early || first != 0u)) {                                              \
        store_tile_words(own, k_simdgroup, k_lane, tile_words);                                    \
      }                                                                                            \
      group_barrier();                                                                             \
      if (2 * k_simdgroup < run.n_heads) {                                                         \
        add_tile(type, min_u32(n_words - first, TILE_WORDS) * kv_word_values(type) / EIGHT,        \
                 tile_words, tile_scales,                                                          \
                 as_words(queries + query_place(2 * k_simdgroup, first * kv_word_values(type))),   \
                 k_lane, dots);                                                                    \
      }                                                                                            \
    }                                                                                              \
    DEVICE(f32)                                                                                    \
    to = scores + (first_record + 2 * k_simdgroup * p.attention.n_parts) * ATTENTION_PART_KEYS;    \
    if (has_key && 2 * k_simdgroup < run.n_heads) {                                                \
      to[key] = dots.first * p.attention.scale;                                                    \
    }                                                                                              \
    if (has_key && 2 * k_simdgroup + 1 < run.n_heads) {                                            \
      to[u64(p.attention.n_parts) * ATTENTION_PART_KEYS + key] = dots.second * p.attention.scale;  \
    }                                                                                              \
  }

ATTENTION_SCORES_KERNEL(attention_scores_f32, KV_F32, f32, store_f32)
ATTENTION_SCORES_KERNEL(attention_scores_f16, KV_F16, f16, store_f16)
ATTENTION_SCORES_KERNEL(attention_scores_bf16, KV_BF16, bf16, store_bf16)
ATTENTION_SCORES_KERNEL(attention_scores_q8_0, KV_Q8_0, u8, store_q8_0)
ATTENTION_SCORES_KERNEL(attention_scores_q4_0, KV_Q4_0, u8, store_q4_0)

}  // namespace hearth::backend::gpu
