#pragma once
/// Attention over the paged cache, included once per instruction set (see kernel_set.inl).
/// The arithmetic is that of graph/ops/attention.h; keys and values are widened once for all heads
/// of the group.

#include HEARTH_LANES

inline void load_rows(const graph::HostKvCache& kv, const std::byte* rows, std::int64_t first,
                      std::int64_t n, std::int64_t head_dim, float* out) {
  const DType dtype = kv.desc().dtype;
  const std::int64_t element_bytes = dtype == DType::f32 ? 4 : 2;
  graph::load_kv_row(dtype, rows + first * head_dim * element_bytes, n * head_dim, out);
}

/// dot_lanes of base/lanes.h.
[[HEARTH_TARGET]] inline float dot(const float* a, const float* b, std::int64_t n) {
  constexpr auto step = static_cast<std::int64_t>(n_lanes);
  std::array<Floats, n_lanes / width> sums{};
  std::int64_t i = 0;
  for (; i + step <= n; i += step) {
    for (std::size_t part = 0; part < sums.size(); ++part) {
      const std::int64_t at = i + static_cast<std::int64_t>(part * width);
      sums[part] = multiply_add(load_floats(a + at), load_floats(b + at), sums[part]);
    }
  }
  Lanes lanes;
  for (std::size_t part = 0; part < sums.size(); ++part) {
    store_floats(sums[part], lanes.data() + part * width);
  }
  for (std::size_t j = 0; i < n; ++i, ++j) {
    lanes[j] = std::fma(a[i], b[i], lanes[j]);
  }
  return sum_lanes(lanes);
}

/// Scratch of one task, cut from the thread's memory.
struct AttendScratch {
  float* rows;    // [16, head_dim], one block of keys or values
  float* scores;  // [group, attention_partition]
  float* values;  // [group, head_dim], weighted values of the current partition
  float* maxima;  // [group], of the current partition
  float* sums;    // [group], of the current partition; the running totals follow

  AttendScratch(std::byte* memory, std::int64_t group, std::int64_t head_dim)
      : rows(as_array<float>(memory)),
        scores(rows + graph::kv_block_tokens * head_dim),
        values(scores + group * graph::attention_partition),
        maxima(values + group * head_dim),
        sums(maxima + group) {}
};

/// Positions [first, last] of one partition, in runs that lie in one cache block.
template <class F>
inline void for_each_run(std::int64_t first, std::int64_t last, F&& f) {
  while (first <= last) {
    const std::int64_t block_end =
        first / graph::kv_block_tokens * graph::kv_block_tokens + graph::kv_block_tokens;
    const std::int64_t n = (block_end <= last ? block_end : last + 1) - first;
    f(first, n);
    first += n;
  }
}

inline void attend_partition(const AttendTask& task, const AttendScratch& s, std::int64_t group,
                             std::int64_t first, std::int64_t last) {
  const auto layer = static_cast<std::size_t>(task.params->layer);
  const std::int64_t head_dim = task.params->head_dim;
  for (std::int64_t head = 0; head < group; ++head) {
    s.maxima[head] = -std::numeric_limits<float>::infinity();
  }
  for_each_run(first, last, [&](std::int64_t position, std::int64_t n) {
    const std::int64_t block = task.block_table[position / graph::kv_block_tokens];
    load_rows(*task.kv, task.kv->keys(layer, block, task.kv_head),
              position % graph::kv_block_tokens, n, head_dim, s.rows);
    for (std::int64_t head = 0; head < group; ++head) {
      for (std::int64_t i = 0; i < n; ++i) {
        const float score =
            task.params->scale * dot(task.q + head * head_dim, s.rows + i * head_dim, head_dim);
        s.scores[head * graph::attention_partition + position - first + i] = score;
        s.maxima[head] = score > s.maxima[head] ? score : s.maxima[head];
      }
    }
  });
  for (std::int64_t head = 0; head < group; ++head) {
    float* weights = s.scores + head * graph::attention_partition;
    for (std::int64_t i = 0; i <= last - first; ++i) {
      weights[i] = canonical_exp(weights[i] - s.maxima[head]);
    }
    Lanes lanes{};
    for (std::int64_t i = 0; i <= last - first; ++i) {
      lanes[static_cast<std::size_t>(first + i) % n_lanes] += weights[i];
    }
    s.sums[head] = sum_lanes(lanes);
  }
  std::fill_n(s.values, group * head_dim, 0.0f);
  for_each_run(first, last, [&](std::int64_t position, std::int64_t n) {
    const std::int64_t block = task.block_table[position / graph::kv_block_tokens];
    load_rows(*task.kv, task.kv->values(layer, block, task.kv_head),
              position % graph::kv_block_tokens, n, head_dim, s.rows);
    for (std::int64_t head = 0; head < group; ++head) {
      float* values = s.values + head * head_dim;
      for (std::int64_t i = 0; i < n; ++i) {
        const float weight = s.scores[head * graph::attention_partition + position - first + i];
        for (std::int64_t d = 0; d < head_dim; ++d) {
          values[d] = std::fma(weight, s.rows[i * head_dim + d], values[d]);
        }
      }
    }
  });
}

/// Folds the partition in `s` into the running result.
inline void merge_partition(const AttendScratch& s, std::int64_t group, std::int64_t head_dim,
                            bool is_first, float* maxima, float* sums, float* out) {
  for (std::int64_t head = 0; head < group; ++head) {
    const float* values = s.values + head * head_dim;
    float* total = out + head * head_dim;
    if (is_first) {
      maxima[head] = s.maxima[head];
      sums[head] = s.sums[head];
      std::copy_n(values, head_dim, total);
      continue;
    }
    const float maximum = s.maxima[head] > maxima[head] ? s.maxima[head] : maxima[head];
    const float keep = canonical_exp(maxima[head] - maximum);
    const float take = canonical_exp(s.maxima[head] - maximum);
    maxima[head] = maximum;
    sums[head] = std::fma(take, s.sums[head], keep * sums[head]);
    for (std::int64_t d = 0; d < head_dim; ++d) {
      total[d] = std::fma(take, values[d], keep * total[d]);
    }
  }
}

[[HEARTH_TARGET, gnu::flatten]] void attend(const AttendTask& task) {
  const std::int64_t group = task.params->n_heads / task.params->n_kv_heads;
  const std::int64_t head_dim = task.params->head_dim;
  const AttendScratch s(task.scratch, group, head_dim);
  float* maxima = s.sums + group;
  float* sums = maxima + group;
  const std::int64_t first = task.params->first_key(task.position);
  for (std::int64_t begin = first; begin <= task.position;) {
    const std::int64_t part_end =
        (begin / graph::attention_partition + 1) * graph::attention_partition - 1;
    attend_partition(task, s, group, begin, part_end < task.position ? part_end : task.position);
    merge_partition(s, group, head_dim, begin == first, maxima, sums, task.out);
    begin = part_end + 1;
  }
  for (std::int64_t head = 0; head < group; ++head) {
    for (std::int64_t d = 0; d < head_dim; ++d) {
      task.out[head * head_dim + d] /= sums[head];
    }
  }
}
