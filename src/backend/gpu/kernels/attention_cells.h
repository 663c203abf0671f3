#pragma once
/// Queries, keys and values of attention_rows_TYPE, by eights: how a thread brings them, which are
/// its own, which keys its queries see. Keys of attention_scores_TYPE, too.

#include "backend/gpu/kernels/attention.h"
#include "backend/gpu/kernels/kv_keys.h"

namespace hearth::backend::gpu {

#define EIGHT 8u           // queries of a thread, keys of a thread, dimensions of a thread
#define QUERY_STRIDE 68u   // of floats for each query; different banks
#define OWN_GAP 32u        // from four keys or dimensions of a thread to the other four
#define BROUGHT_EIGHTS 2u  // of dimensions of a key, or of a value, that a thread brings

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

/// The thread's queries, and its keys of a half or dimensions: two times four that are 32 apart,
/// which meet different banks.
struct OwnPlace {
  u32 query;
  u32 first;
};

DEVICE_FN OwnPlace own_place(u32 thread_id) {
  const u32 lane = thread_id % 32;
  const u32 simdgroup = thread_id / 32;
  const OwnPlace place = {simdgroup / 4 * 32 + lane / 8 * EIGHT, simdgroup % 4 * 64 + lane % 8 * 4};
  return place;
}

/// How far own key or dimension i is from the first.
DEVICE_FN u32 own_offset(u32 i) {
  return i < 4u ? i : i + OWN_GAP - 4u;
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

}  // namespace hearth::backend::gpu
