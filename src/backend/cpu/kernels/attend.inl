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

  AttendScratch(std::byte* memory, std::int64_t head_dim)
      : rows(as_array<float>(memory)), scores(rows + graph::kv_block_tokens * head_dim) {}
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

[[HEARTH_TARGET, gnu::flatten]] void attend(const AttendTask& task) {
  const auto layer = static_cast<std::size_t>(task.params->layer);
  const std::int64_t group = task.params->n_heads / task.params->n_kv_heads;
  const std::int64_t head_dim = task.params->head_dim;
  const std::int64_t begin = task.partition * graph::attention_partition;
  const std::int64_t first = std::max(begin, task.params->first_key(task.position));
  const std::int64_t last = std::min(begin + graph::attention_partition - 1, task.position);
  const AttendScratch s(task.scratch, head_dim);
  const auto partial = [&](std::int64_t head) {
    return task.partials + head * partial_floats(head_dim);
  };
  for (std::int64_t head = 0; head < group; ++head) {
    partial(head)[partial_maximum(head_dim)] = -std::numeric_limits<float>::infinity();
    std::fill_n(partial(head), head_dim, 0.0f);
  }
  for_each_run(first, last, [&](std::int64_t position, std::int64_t n) {
    const std::int64_t block = task.block_table[position / graph::kv_block_tokens];
    load_rows(*task.kv, task.kv->keys(layer, block, task.kv_head),
              position % graph::kv_block_tokens, n, head_dim, s.rows);
    for (std::int64_t head = 0; head < group; ++head) {
      float& maximum = partial(head)[partial_maximum(head_dim)];
      for (std::int64_t i = 0; i < n; ++i) {
        const float score =
            task.params->scale * dot(task.q + head * head_dim, s.rows + i * head_dim, head_dim);
        s.scores[head * graph::attention_partition + position - first + i] = score;
        maximum = score > maximum ? score : maximum;
      }
    }
  });
  for (std::int64_t head = 0; head < group; ++head) {
    float* weights = s.scores + head * graph::attention_partition;
    const float maximum = partial(head)[partial_maximum(head_dim)];
    for (std::int64_t i = 0; i <= last - first; ++i) {
      weights[i] = canonical_exp(weights[i] - maximum);
    }
    Lanes lanes{};
    for (std::int64_t i = 0; i <= last - first; ++i) {
      lanes[static_cast<std::size_t>(first + i) % n_lanes] += weights[i];
    }
    partial(head)[partial_sum(head_dim)] = sum_lanes(lanes);
  }
  for_each_run(first, last, [&](std::int64_t position, std::int64_t n) {
    const std::int64_t block = task.block_table[position / graph::kv_block_tokens];
    load_rows(*task.kv, task.kv->values(layer, block, task.kv_head),
              position % graph::kv_block_tokens, n, head_dim, s.rows);
    for (std::int64_t head = 0; head < group; ++head) {
      float* values = partial(head);
      for (std::int64_t i = 0; i < n; ++i) {
        const float weight = s.scores[head * graph::attention_partition + position - first + i];
        for (std::int64_t d = 0; d < head_dim; ++d) {
          values[d] = std::fma(weight, s.rows[i * head_dim + d], values[d]);
        }
      }
    }
  });
}

[[HEARTH_TARGET, gnu::flatten]] void fold_partial(std::int64_t head_dim, const float* next,
                                                  float* total) {
  const float before = total[partial_maximum(head_dim)];
  const float here = next[partial_maximum(head_dim)];
  const float maximum = here > before ? here : before;
  const float keep = canonical_exp(before - maximum);
  const float take = canonical_exp(here - maximum);
  total[partial_maximum(head_dim)] = maximum;
  float& sum = total[partial_sum(head_dim)];
  sum = std::fma(take, next[partial_sum(head_dim)], keep * sum);
  for (std::int64_t d = 0; d < head_dim; ++d) {
    total[d] = std::fma(take, next[d], keep * total[d]);
  }
}

[[HEARTH_TARGET]] void finish_partial(std::int64_t head_dim, const float* total, float* out) {
  const float sum = total[partial_sum(head_dim)];
  for (std::int64_t d = 0; d < head_dim; ++d) {
    out[d] = total[d] / sum;
  }
}
