#pragma once
/// The steps of a router (graph/ops/router.h) by the threads of a threadgroup. No order of threads
/// enters the choice.

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/kernels/lanes.h"

namespace hearth::backend::gpu {

/// The largest logit that the caller's simdgroup sees. Whatever becomes of it with a NaN, the sum
/// of exponentials will be one.
DEVICE_FN f32 largest_logit(DEVICE(const f32) logits, u32 n, u32 thread_index, u32 n_threads) {
  f32 maximum = logits[0];
  for (u32 i = thread_index; i < n; i += n_threads) {
    maximum = logits[i] > maximum ? logits[i] : maximum;
  }
  return simd_max_f32(maximum);
}

/// By the lanes of one simdgroup.
DEVICE_FN f32 sum_exponentials(SHARED(const f32) values, u32 n, u32 lane) {
  f32 partial = 0.0f;
  for (u32 i = lane % N_LANES; i < n; i += N_LANES) {
    partial += values[i];
  }
  return sum_lanes(partial);
}

/// 1 if expert j with value a comes before expert i with value b.
DEVICE_FN u32 is_before(f32 a, u32 j, f32 b, u32 i) {
  return a > b || (a == b && j < i) ? 1u : 0u;
}

/// The experts of ranks 0 ... n_used - 1, given all probabilities. A rank is the number of those
/// before, counted by comparing with all others. Ranks mean nothing with a NaN in
/// the sum of exponentials: experts 0, 1, ... then.
DEVICE_FN void choose_experts(SHARED(const f32) values, u32 n, u32 n_used, f32 sum,
                              SHARED(u32) chosen, u32 thread_index, u32 n_threads) {
  for (u32 i = thread_index; i < n; i += n_threads) {
    u32 rank = 0;
    const f32 value = values[i];
    u32 j = 0;
    for (; j + 8 <= n; j += 8) {
      const f32x4 low = load4(values + j);
      const f32x4 high = load4(values + j + 4);
      rank += is_before(low.x, j, value, i) + is_before(low.y, j + 1, value, i) +
              is_before(low.z, j + 2, value, i) + is_before(low.w, j + 3, value, i) +
              is_before(high.x, j + 4, value, i) + is_before(high.y, j + 5, value, i) +
              is_before(high.z, j + 6, value, i) + is_before(high.w, j + 7, value, i);
    }
    for (; j < n; ++j) {
      rank += is_before(values[j], j, value, i);
    }
    rank = is_nan_f32(sum) ? i : rank;
    if (rank < n_used) {
      chosen[rank] = i;
    }
  }
}

#define CHOICE_VALUES 8  // of a lane

/// Whether choose_by_rounds takes so many experts.
DEVICE_FN bool chooses_by_rounds(u32 n) {
  return n <= 32u * CHOICE_VALUES;
}

/// The same as choose_experts by one simdgroup, which takes the largest that is left in each of
/// n_used rounds; of equals that is the first. Fewer steps than counting ranks, where n_used is
/// small.
DEVICE_FN void choose_by_rounds(SHARED(const f32) values, u32 n, u32 n_used, f32 sum,
                                SHARED(u32) chosen, u32 lane) {
  u32 keys[CHOICE_VALUES];  // 0: none or taken; floats from 0 on are in the order of their bits
  UNROLL for (u32 i = 0; i < CHOICE_VALUES; ++i) {
    const u32 expert = CHOICE_VALUES * lane + i;
    keys[i] = expert < n ? bits_of_f32(values[expert]) + 1u : 0u;
  }
  for (u32 round = 0; round < n_used; ++round) {
    u32 key = 0;
    u32 mine = 0;
    UNROLL for (u32 i = 0; i < CHOICE_VALUES; ++i) {
      mine = keys[i] > key ? i : mine;
      key = max_u32(keys[i], key);
    }
    const bool is_largest = key == simd_max_u32(key);
    const u32 owner = 32u - simd_max_u32(is_largest ? 32u - lane : 0u);
    if (lane == owner) {
      chosen[round] = is_nan_f32(sum) ? round : CHOICE_VALUES * lane + mine;
    }
    UNROLL for (u32 i = 0; i < CHOICE_VALUES; ++i) {
      keys[i] = lane == owner && i == mine ? 0u : keys[i];
    }
  }
}

/// The order of floats; above all others are NaNs without a sign.
DEVICE_FN u32 order_of_f32(f32 value) {
  const u32 bits = bits_of_f32(value);
  return (bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u;
}
DEVICE_FN f32 f32_of_order(u32 order) {
  return f32_of_bits((order & 0x80000000u) != 0u ? order & 0x7fffffffu : ~order);
}

// All of a router's work by one simdgroup, for a row of up to 32 ROUTE_VALUES experts. Value i of a
// lane is that of expert route_first() + 16 i, so that lanes j and j + 16 have the first and second
// half of one of the sixteen chains of the sum.

#define ROUTE_VALUES 16

DEVICE_FN u32 route_first(u32 lane) {
  return lane % N_LANES + ROUTE_VALUES * N_LANES * (lane / N_LANES);
}

/// The lane's logits.
DEVICE_FN void load_route(DEVICE(const f32) logits, u32 n, u32 lane, THREAD(f32) values) {
  UNROLL for (u32 i = 0; i < ROUTE_VALUES; ++i) {
    values[i] = logits[min_u32(route_first(lane) + N_LANES * i, n - 1u)];
  }
}

/// The experts and their probabilities, in order of choice; of equals the first, and experts 0, 1,
/// ... with a NaN in the sum of exponentials.
DEVICE_FN void route_row(THREAD(f32) values, u32 n, u32 n_used, u32 lane, SHARED(u32) chosen,
                         SHARED(f32) probabilities) {
  const u32 first = route_first(lane);
  u32 largest = 0;
  UNROLL for (u32 i = 0; i < ROUTE_VALUES; ++i) {
    largest = max_u32(largest, order_of_f32(values[i]));
  }
  const f32 maximum = f32_of_order(simd_max_u32(largest));
  f32 sum = 0.0f;
  UNROLL for (u32 i = 0; i < ROUTE_VALUES; ++i) {
    values[i] = first + N_LANES * i < n ? exp_f32(values[i] - maximum) : 0.0f;
    sum += values[i];
  }
  sum = shuffle_xor(sum, N_LANES);  // upper lanes go on with the lower ones' chains
  UNROLL for (u32 i = 0; i < ROUTE_VALUES; ++i) {
    sum += values[i];
  }
  sum = shuffle(sum_lanes(sum), N_LANES);
  u32 keys[ROUTE_VALUES];  // 0: none or taken; floats from 0 on are in the order of their bits
  UNROLL for (u32 i = 0; i < ROUTE_VALUES; ++i) {
    keys[i] = first + N_LANES * i < n ? bits_of_f32(values[i] / sum) + 1u : 0u;
  }
  for (u32 round = 0; round < n_used; ++round) {
    u32 key = 0;
    UNROLL for (u32 i = 0; i < ROUTE_VALUES; ++i) {
      key = max_u32(keys[i], key);
    }
    key = simd_max_u32(key);
    u32 expert = ~0u;
    UNROLL for (u32 i = 0; i < ROUTE_VALUES; ++i) {
      const u32 last = ROUTE_VALUES - 1 - i;
      expert = keys[last] == key ? first + N_LANES * last : expert;
    }
    expert = simd_min_u32(expert);
    UNROLL for (u32 i = 0; i < ROUTE_VALUES; ++i) {
      keys[i] = first + N_LANES * i == expert ? 0u : keys[i];
    }
    if (lane == 0u) {
      chosen[round] = is_nan_f32(sum) ? round : expert;
      probabilities[round] = is_nan_f32(sum) ? sum : f32_of_bits(key - 1u);
    }
  }
}

// All of a router's work by a threadgroup, for a row of up to 256 experts of which up to eight are
// used: of each CHOICE_GROUP neighbouring experts the first eight by a simdgroup, then of all those
// the first eight. The same as route_row in less time, where a threadgroup waits for it.

#define CHOICE_GROUP 32  // experts
#define CHOICE_GROUPS 8
#define CHOICE_USED 8
#define CHOICE_KEYS (CHOICE_GROUPS * CHOICE_USED)

DEVICE_FN u32 largest_of_four(f32x4 x) {
  return max_u32(max_u32(order_of_f32(x.x), order_of_f32(x.y)),
                 max_u32(order_of_f32(x.z), order_of_f32(x.w)));
}

/// The exponential of a simdgroup's expert in each lane, `logits` being all.
DEVICE_FN f32 choice_exponential(DEVICE(const f32) logits, u32 n, u32 simdgroup, u32 lane) {
  const u32 expert = CHOICE_GROUP * simdgroup + lane;
  const f32 mine = logits[min_u32(expert, n - 1u)];
  u32 largest = 0;
  if (n % 4 == 0u) {
    const f32x4 low = load4(logits + min_u32(8 * lane, n - 4u));
    const f32x4 high = load4(logits + min_u32(8 * lane + 4, n - 4u));
    largest = max_u32(largest_of_four(low), largest_of_four(high));
  } else {
    KEEP_LOOP for (u32 i = lane; i < n; i += CHOICE_GROUP) {
      largest = max_u32(largest, order_of_f32(logits[i]));
    }
  }
  const f32 maximum = f32_of_order(simd_max_u32(largest));
  return expert < n ? exp_f32(mine - maximum) : 0.0f;
}

/// The sum of all exponentials, which lie in `values`, zeroes behind the last up to a multiple of
/// 64.
DEVICE_FN f32 choice_sum(SHARED(const f32) values, u32 n, u32 lane) {
  f32 partial = 0.0f;
  for (u32 i = lane % N_LANES; i < n; i += 4 * N_LANES) {
    const f32 next[4] = {values[i], values[i + N_LANES], values[i + 2 * N_LANES],
                         values[i + 3 * N_LANES]};
    UNROLL for (u32 step = 0; step < 4; ++step) {
      partial += next[step];
    }
  }
  return sum_lanes(partial);
}

/// The larger an expert's key, the sooner it is chosen: one more than the bits of its probability,
/// which are in the order of floats from 0 on; 0 where there is none. With a NaN in the sum, keys
/// are those of other NaNs, so that experts 0, 1, ... are chosen.
DEVICE_FN u32 choice_key(f32 exponential, f32 sum, u32 expert, u32 n) {
  const u32 key = is_nan_f32(sum) ? ~expert : bits_of_f32(exponential / sum) + 1u;
  return expert < n ? key : 0u;
}

/// How many of n keys, a multiple of four, come before `key`, whose place among them is `place`.
DEVICE_FN u32 keys_before(SHARED(const u32) keys, u32 n, u32 key, u32 place) {
  u32 count = 0;
  for (u32 i = 0; i < n; i += 4) {
    const u32x4 four = load4(keys + i);
    count += four.x > key || (four.x == key && i < place) ? 1u : 0u;
    count += four.y > key || (four.y == key && i + 1u < place) ? 1u : 0u;
    count += four.z > key || (four.z == key && i + 2u < place) ? 1u : 0u;
    count += four.w > key || (four.w == key && i + 3u < place) ? 1u : 0u;
  }
  return count;
}

/// The first CHOICE_USED of a simdgroup's experts, given all exponentials as choice_sum() takes
/// them: their keys and numbers. `keys` is for all experts.
DEVICE_FN void choose_of_group(SHARED(const f32) exponentials, u32 n, u32 simdgroup, u32 lane,
                               SHARED(u32) keys, SHARED(u32) first_keys,
                               SHARED(u32) first_experts) {
  const u32 expert = CHOICE_GROUP * simdgroup + lane;
  const u32 key = choice_key(exponentials[expert], choice_sum(exponentials, n, lane), expert, n);
  keys[expert] = key;
  simdgroup_barrier();
  const u32 rank = keys_before(keys + CHOICE_GROUP * simdgroup, CHOICE_GROUP, key, lane);
  if (rank < CHOICE_USED) {
    first_keys[CHOICE_USED * simdgroup + rank] = key;
    first_experts[CHOICE_USED * simdgroup + rank] = expert;
  }
}

/// Of those of all simdgroups the first n_used, in order, and their probabilities: by four threads
/// for each, of which there are CHOICE_GROUPS simdgroups.
DEVICE_FN void choose_of_first(SHARED(const u32) first_keys, SHARED(const u32) first_experts,
                               u32 n_used, u32 thread_index, SHARED(u32) chosen,
                               SHARED(f32) probabilities) {
  const u32 place = thread_index / 4;
  const u32 part = thread_index % 4 * (CHOICE_KEYS / 4);
  const u32 key = first_keys[place];
  u32 rank = keys_before(first_keys + part, CHOICE_KEYS / 4, key, place < part ? 0u : place - part);
  rank += shuffle_xor(rank, 1);
  rank += shuffle_xor(rank, 2);
  if (part == 0u && rank < n_used) {
    chosen[rank] = first_experts[place];
    probabilities[rank] = f32_of_bits(key - 1u);
  }
}

/// The row that a router gives, of experts and probabilities in order of choice; by one simdgroup.
DEVICE_FN void write_choice(SHARED(const u32) chosen, SHARED(const f32) probabilities, u32 n_used,
                            u32 lane, DEVICE(f32) routing) {
  f32 sum = 0.0f;
  for (u32 slot = 0; slot < n_used; ++slot) {
    sum += probabilities[slot];
  }
  for (u32 slot = lane; slot < n_used; slot += 32) {
    routing[slot] = f32(chosen[slot]);
    routing[n_used + slot] = probabilities[slot] / sum;
  }
}

/// The same, given all probabilities.
DEVICE_FN void write_routing(SHARED(const f32) values, SHARED(const u32) chosen, u32 n_used,
                             u32 thread_index, u32 n_threads, DEVICE(f32) routing) {
  f32 sum = 0.0f;
  for (u32 slot = 0; slot < n_used; ++slot) {
    sum += values[chosen[slot]];
  }
  for (u32 slot = thread_index; slot < n_used; slot += n_threads) {
    routing[slot] = f32(chosen[slot]);
    routing[n_used + slot] = values[chosen[slot]] / sum;
  }
}

}  // namespace hearth::backend::gpu
