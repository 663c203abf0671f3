// attention_scores_TYPE: a simdgroup takes 32 keys, one a lane, and two query heads, dimension by
// dimension: words of 16 bytes of a key from memory, both queries from shared memory. Four
// simdgroups take up to eight heads, and more keys where heads are fewer. Where the row's own key
// is not in the cache yet, they form the queries first, the threadgroup that has the key forms that
// too, by a fifth simdgroup, and stores it with the value. Bound by latency for short contexts,
// by memory and chains of multiplications for long ones.

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/kernels/attention.h"
#include "backend/gpu/kernels/attention_heads.h"
#include "backend/gpu/kernels/kv_keys.h"

namespace hearth::backend::gpu {

#define SCORE_WORDS 16u      // of a key, asked for before the first is used
#define SCORE_SIMDGROUPS 4u  // that take keys
#define QUERY_QUADS 4u       // of four values of ready queries, that a thread copies
#define QUERY_PAIR (2 * ATTENTION_MAX_HEAD_DIM)  // floats: [head_dim][2 heads]

/// Some words of a lane's key, each where a later one may follow it.
struct KeyWords {
  u32x4 words[SCORE_WORDS];
  f32 scales[SCORE_WORDS];
};

/// A lane's key.
struct KeyPlace {
  u64 panel;  // byte
  u32 slot;
};

DEVICE_FN KeyPlace key_place(u32 type, KvHead head, DEVICE(const i32) table, u32 key) {
  const KeyPlace place = {panel_start(type, head, table, key), key % ATTENTION_BLOCK_KEYS};
  return place;
}

/// Word `word` of the key to place w.
DEVICE_FN void load_key_word(u32 type, u32 head_dim, KeyPlace place, u32 word, u32 w,
                             DEVICE(const u8) keys, THREAD_REF(KeyWords) held) {
  DEVICE(const u8) panel = keys + place.panel;
  held.words[w] = load4(words(panel + 16 * (word * ATTENTION_BLOCK_KEYS + place.slot)));
  held.scales[w] = 1.0f;
  if (type >= KV_Q8_0) {
    held.scales[w] = kv_scale(panel + kv_cell_bytes(type, head_dim),
                              word * kv_word_values(type) / 32 * ATTENTION_BLOCK_KEYS + place.slot);
  }
}

/// The first words, or zeros for a lane without a key.
DEVICE_FN void load_key(u32 type, u32 head_dim, bool has_key, KeyPlace place, DEVICE(const u8) keys,
                        THREAD_REF(KeyWords) held) {
  const u32 n_words = head_dim / kv_word_values(type);
  UNROLL for (u32 w = 0; w < SCORE_WORDS; ++w) {
    const u32x4 nothing = {0, 0, 0, 0};
    held.words[w] = nothing;
    held.scales[w] = 0.0f;
    if (has_key && w < n_words) {
      load_key_word(type, head_dim, place, w, w, keys, held);
    }
  }
}

/// Dots of the lane's key with two queries, [head_dim][2] in shared memory.
struct TwoDots {
  f32 first;
  f32 second;
};

DEVICE_FN TwoDots dots_of_key(u32 type, u32 head_dim, bool has_key, KeyPlace place,
                              DEVICE(const u8) keys, SHARED(const f32) queries,
                              THREAD_REF(KeyWords) held) {
  const u32 n_word = kv_word_values(type);
  const u32 n_part = n_word / 4;
  const u32 n_words = head_dim / n_word;
  TwoDots dots = {0.0f, 0.0f};
  for (u32 begin = 0; begin < n_words; begin += SCORE_WORDS) {
    UNROLL for (u32 w = 0; w < SCORE_WORDS; ++w) {
      if (begin + w < n_words) {
        const u32x4 word = held.words[w];
        const f32 scale = held.scales[w];
        if (has_key && begin + w + SCORE_WORDS < n_words) {
          load_key_word(type, head_dim, place, begin + w + SCORE_WORDS, w, keys, held);
        }
        UNROLL for (u32 i = 0; i < n_word; i += 2) {
          const f32x4 q = load4(queries + 2 * ((begin + w) * n_word + i));
          const f32 even = kv_part_value(type, word_part(word, i / n_part), i % n_part, scale);
          const f32 odd =
              kv_part_value(type, word_part(word, (i + 1) / n_part), (i + 1) % n_part, scale);
          dots.first = fma_f32(q.x, even, dots.first);
          dots.second = fma_f32(q.y, even, dots.second);
          dots.first = fma_f32(q.z, odd, dots.first);
          dots.second = fma_f32(q.w, odd, dots.second);
        }
      }
    }
  }
  return dots;
}

/// Simdgroups that share out the heads; the others take further keys.
DEVICE_FN u32 score_pairs(u32 n_heads) {
  return n_heads > 4u ? 4u : n_heads > 2u ? 2u : 1u;
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

/// Copies queries that are ready, n of them, to where pairs of heads are; those that are not there
/// are zero.
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
      SHARED(f32) to = queries + (head / 2 * QUERY_PAIR + at % head_dim * 2 + head % 2);
      to[0] = quads[i].x;
      to[2] = quads[i].y;
      to[4] = quads[i].z;
      to[6] = quads[i].w;
    }
  }
}

#define ATTENTION_SCORES_KERNEL(name, type, Cell, store)                                           \
  EARLY_KERNEL(name, ATTENTION_SCORE_THREADS, AttentionScoresParams, BUFFER(0, const u32, counts), \
               BUFFER(1, const f32, q), BUFFER(2, const f32, k), BUFFER(3, const f32, v),          \
               BUFFER(4, const f32, q_norm), BUFFER(5, const f32, k_norm),                         \
               BUFFER(6, const f32, angles), BUFFER(7, const i32, positions),                      \
               BUFFER(8, const i32, sequences), BUFFER(9, const i32, tables),                      \
               BUFFER(10, Cell, keys), BUFFER(11, Cell, values), BUFFER(12, f32, scores)) {        \
    SHARED_ARRAY(f32, queries, SCORE_SIMDGROUPS* QUERY_PAIR);                                      \
    SHARED_ARRAY(f32, raw, (2 * SCORE_SIMDGROUPS + 2) * ATTENTION_MAX_HEAD_DIM);                   \
    SHARED_ARRAY(f32, ready_key, ATTENTION_MAX_HEAD_DIM);                                          \
    const u32 row = k_group.z;                                                                     \
    const u32 head_dim = p.heads.head_dim;                                                         \
    const HeadRun run = head_run(p.attention, k_group.y, ATTENTION_MAX_HEADS);                     \
    const KvHead kv_head = {head_dim, p.heads.n_kv_heads, run.kv_head};                            \
    const u32 n_pairs = score_pairs(run.n_heads);                                                  \
    const u32 tile_keys = 32 * SCORE_SIMDGROUPS / n_pairs;                                         \
    u32 tile = 0;                                                                                  \
    u32 last_tile = 0;                                                                             \
    u32 position = 0;                                                                              \
    u32 first_key = 0;                                                                             \
    if (row < counts[0]) {                                                                         \
      position = u32(positions[row]);                                                              \
      first_key = first_key_seen(position, p.attention.window);                                    \
      tile = first_key / tile_keys + k_group.x;                                                    \
      last_tile = position / tile_keys;                                                            \
    }                                                                                              \
    if (row >= counts[0] || tile > last_tile) {                                                    \
      wait_for_kernel_before();                                                                    \
      return;                                                                                      \
    }                                                                                              \
    DEVICE(const i32)                                                                              \
    table = tables + u64(u32(sequences[row])) * p.heads.table_stride;                              \
    const bool forms = p.attention.is_alone != 0u;                                                 \
    const bool stores = forms && (last_tile - tile) % k_grid_size.x == 0u;                         \
    const bool takes_keys = k_simdgroup < SCORE_SIMDGROUPS;                                        \
    const u32 in_tile = k_simdgroup / n_pairs * 32 + k_lane;                                       \
    u32 key = tile * tile_keys + in_tile;                                                          \
    bool has_key = takes_keys && key >= first_key && key <= position;                              \
    KeyPlace place = key_place(type, kv_head, table, has_key ? key : position);                    \
    KeyWords held;                                                                                 \
    load_key(type, head_dim, has_key&& forms&& key != position, place, bytes_of(keys), held);      \
    HeadForm form;                                                                                 \
    if (forms) {                                                                                   \
      form = load_form(p.heads, takes_keys, takes_keys ? q_norm : k_norm,                          \
                       angles + u64(row) * p.heads.rope.n_rot, k_lane);                            \
    }                                                                                              \
    wait_for_kernel_before();                                                                      \
    const u32 pair = k_simdgroup % n_pairs;                                                        \
    if (forms && takes_keys) {                                                                     \
      const u32 first = 2 * k_simdgroup;                                                           \
      const u32 head = run.first_head + first;                                                     \
      const TwoHeads two = load_two_queries(                                                       \
          p.heads, first < run.n_heads ? run.n_heads - first : 0u,                                 \
          q + (u64(row) * p.heads.q_features + head * p.heads.q_period + p.heads.q_start),         \
          k_lane);                                                                                 \
      SHARED(f32) own = raw + first * ATTENTION_MAX_HEAD_DIM;                                      \
      put_head(two.heads[0], head_dim, k_lane, own);                                               \
      put_head(two.heads[1], head_dim, k_lane, own + ATTENTION_MAX_HEAD_DIM);                      \
      simdgroup_barrier();                                                                         \
      UNROLL for (u32 h = 0; h < 2; ++h) {                                                         \
        form_head(p.heads, true, two.heads[h], form, own + h * ATTENTION_MAX_HEAD_DIM,             \
                  queries + (k_simdgroup * QUERY_PAIR + h), 2, k_lane);                            \
      }                                                                                            \
    } else if (stores && !takes_keys) {                                                            \
      const u64 at = (u64(row) * p.heads.n_kv_heads + run.kv_head) * head_dim;                     \
      const HeadValues new_key = load_head(k + at, head_dim, k_lane);                              \
      const HeadValues new_value = load_head(v + at, head_dim, k_lane);                            \
      SHARED(f32) raw_key = raw + 2 * SCORE_SIMDGROUPS * ATTENTION_MAX_HEAD_DIM;                   \
      put_head(new_key, head_dim, k_lane, raw_key);                                                \
      put_head(new_value, head_dim, k_lane, raw_key + ATTENTION_MAX_HEAD_DIM);                     \
      simdgroup_barrier();                                                                         \
      form_head(p.heads, false, new_key, form, raw_key, ready_key, 1, k_lane);                     \
      simdgroup_barrier();                                                                         \
      store(kv_place(p.heads, table, position, run.kv_head), ready_key,                            \
            raw_key + ATTENTION_MAX_HEAD_DIM, keys, values, k_lane);                               \
    } else if (!forms) {                                                                           \
      copy_queries(q + (u64(row) * p.heads.n_heads + run.first_head) * head_dim, run.n_heads,      \
                   head_dim, k_thread.x, queries);                                                 \
    }                                                                                              \
    group_barrier_device();                                                                        \
    if (!takes_keys) {                                                                             \
      return;                                                                                      \
    }                                                                                              \
    if (has_key && (!forms || key == position)) {                                                  \
      load_key(type, head_dim, true, place, bytes_of(keys), held);                                 \
    }                                                                                              \
    const u64 head = u64(row) * p.heads.n_heads + run.first_head + 2 * pair;                       \
    DEVICE(f32) to = scores + head * p.attention.n_parts * ATTENTION_PART_KEYS;                    \
    while (true) {                                                                                 \
      const TwoDots dots = dots_of_key(type, head_dim, has_key, place, bytes_of(keys),             \
                                       queries + pair * QUERY_PAIR, held);                         \
      if (has_key && 2 * pair < run.n_heads) {                                                     \
        to[key] = dots.first * p.attention.scale;                                                  \
      }                                                                                            \
      if (has_key && 2 * pair + 1 < run.n_heads) {                                                 \
        to[u64(p.attention.n_parts) * ATTENTION_PART_KEYS + key] =                                 \
            dots.second * p.attention.scale;                                                       \
      }                                                                                            \
      tile += k_grid_size.x;                                                                       \
      if (tile > last_tile) {                                                                      \
        return;                                                                                    \
      }                                                                                            \
      key = tile * tile_keys + in_tile;                                                            \
      has_key = key >= first_key && key <= position;                                               \
      place = key_place(type, kv_head, table, has_key ? key : position);                           \
      load_key(type, head_dim, has_key, place, bytes_of(keys), held);                              \
    }                                                                                              \
  }

ATTENTION_SCORES_KERNEL(attention_scores_f32, KV_F32, f32, store_f32)
ATTENTION_SCORES_KERNEL(attention_scores_f16, KV_F16, f16, store_f16)
ATTENTION_SCORES_KERNEL(attention_scores_bf16, KV_BF16, bf16, store_bf16)
ATTENTION_SCORES_KERNEL(attention_scores_q8_0, KV_Q8_0, u8, store_q8_0)
ATTENTION_SCORES_KERNEL(attention_scores_q4_0, KV_Q4_0, u8, store_q4_0)

}  // namespace hearth::backend::gpu
