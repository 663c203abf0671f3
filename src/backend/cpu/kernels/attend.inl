#pragma once
/// Attention over the paged cache, included once per instruction set (see kernel_set.inl).
/// The arithmetic is that of graph/ops/attention.h. All queries of a task meet a key or value while
/// it is near: scores as a product of queries and keys (lanes: keys), then the weighted sums as a
/// product of weights and values (lanes: dimensions).

#include "backend/cpu/kernels/softmax.inl"
#include "backend/cpu/kernels/strip_product.inl"

/// A task with what follows from it.
struct AttendView {
  explicit AttendView(const AttendTask& of)
      : task(of),
        layer(static_cast<std::size_t>(of.params->layer)),
        group(of.params->n_heads / of.params->n_kv_heads),
        head_dim(of.params->head_dim),
        begin(of.partition * graph::attention_partition),
        widened(as_array<float>(of.scratch)),
        scores(widened + attend_chunk * graph::value_stride(head_dim)) {}

  [[nodiscard]] KeyRange keys_of(std::int64_t row) const {
    return {*task.params, task.position + row, task.partition};
  }
  [[nodiscard]] float* scores_of(std::int64_t query) const {
    return scores + query * graph::attention_partition;
  }
  [[nodiscard]] float* partial(std::int64_t query) const {
    return task.partials + query * partial_floats(head_dim);
  }

  const AttendTask& task;
  std::size_t layer;
  std::int64_t group;
  std::int64_t head_dim;
  std::int64_t begin;  // first position of the partition
  float* widened;      // keys or values of a chunk
  float* scores;       // [queries, attention_partition], then weights
};

/// The panels of a chunk. Blocks that no row sees repeat a neighbour, which does not matter.
using ChunkPanels = std::array<const std::byte*, attend_chunk / graph::kv_block_tokens>;

enum class CacheHalf : std::uint8_t { keys, values };

/// widen_keys of a quantized panel, which compilers leave in single elements.
template <class Q>
[[HEARTH_TARGET]] void widen_quantized_keys(const std::byte* panel, std::int64_t head_dim,
                                            float* out) {
  using Panel = graph::QuantizedPanel<Q>;
  static constexpr std::int64_t slots = graph::kv_block_tokens;
  const auto put = [&](const Floats& scale, const Ints& codes, std::int64_t at)
                       HEARTH_LAMBDA { store_floats(multiply(scale, to_floats(codes)), out + at); };
  for (std::int64_t d = 0; d < head_dim; d += Panel::group, panel += Panel::group_bytes) {
    const std::byte* codes = panel + slots * static_cast<std::int64_t>(sizeof(Half));
    for (std::int64_t lane = 0; lane < slots; lane += static_cast<std::int64_t>(width)) {
      const Floats scale = load_halves(panel + lane * static_cast<std::int64_t>(sizeof(Half)));
      for (std::int64_t i = 0; i < static_cast<std::int64_t>(Panel::code_bytes); ++i) {
        const std::int64_t at = i * slots + lane;
        if constexpr (std::is_same_v<Q, quant::Q8_0>) {
          put(scale, load_signed_bytes(codes + at), d * slots + at);
        } else {
          const Ints bytes = load_unsigned_bytes(codes + at);
          const Ints bias = same_ints(8);
          put(scale, subtract(bit_and(bytes, same_ints(15)), bias), d * slots + at);
          put(scale, subtract(shift_right(bytes, 4), bias), (d + 16) * slots + at);
        }
      }
    }
  }
}

template <class Panel>
inline constexpr bool is_quantized = false;
template <class Q>
inline constexpr bool is_quantized<graph::QuantizedPanel<Q>> = true;

[[HEARTH_TARGET, gnu::flatten]] inline void widen_panel(DType dtype, CacheHalf half,
                                                        const std::byte* panel,
                                                        std::int64_t head_dim, float* out) {
  graph::KvPanels::visit(dtype, [&]<class Panel>() {
    if (half == CacheHalf::values) {
      Panel::widen_values(panel, head_dim, out);
    } else if constexpr (is_quantized<Panel>) {
      widen_quantized_keys<typename Panel::Quant>(panel, head_dim, out);
    } else {
      Panel::widen_keys(panel, head_dim, out);
    }
  });
}

[[HEARTH_TARGET]] inline ChunkPanels chunk_panels(const AttendView& view, CacheHalf half,
                                                  std::int64_t chunk) {
  const auto& task = view.task;
  const std::int64_t first = view.keys_of(0).first;
  const std::int64_t last = view.keys_of(task.n_rows - 1).last;
  const DType dtype = task.kv->desc().dtype;
  float* out = view.widened;
  ChunkPanels panels;
  for (std::size_t i = 0; i < panels.size(); ++i) {
    const std::int64_t position = chunk + static_cast<std::int64_t>(i) * graph::kv_block_tokens;
    const std::int64_t block =
        task.block_table[std::clamp(position, first, last) / graph::kv_block_tokens];
    panels[i] = half == CacheHalf::keys ? task.kv->keys(view.layer, block, task.kv_head)
                                        : task.kv->values(view.layer, block, task.kv_head);
    if (dtype != DType::f32 && dtype != DType::f16) {
      widen_panel(dtype, half, panels[i], view.head_dim, out);
      panels[i] = as_byte_array(out);
      out += graph::kv_block_tokens * graph::value_stride(view.head_dim);
    }
  }
  return panels;
}

/// Scores of all queries with the keys of a chunk that any row sees, and some around them.
template <class Source>
[[HEARTH_TARGET]] void add_scores(const AttendView& view, std::int64_t chunk) {
  static constexpr std::int64_t block = graph::kv_block_tokens;
  const auto& task = view.task;
  const std::int64_t first = view.keys_of(0).first;
  const std::int64_t last = view.keys_of(task.n_rows - 1).last;
  const ChunkPanels panels = chunk_panels(view, CacheHalf::keys, chunk);
  for (std::int64_t lane = 0; lane < attend_chunk; lane += strip_lanes) {
    if (chunk + lane > last || chunk + lane + strip_lanes <= first) {
      continue;
    }
    const auto* panel = panels.data() + lane / block;
    const std::int64_t n_queries = task.n_rows * view.group;
    float* scores = view.scores + chunk + lane - view.begin;
    for (std::int64_t query = 0; query < n_queries; ++query) {
      std::fill_n(scores + query * graph::attention_partition, strip_lanes, 0.0f);
    }
    multiply_strip_rows<Source>(
        {.a = task.q,
         .a_stride = view.head_dim,
         .panels = panel,
         .panel_steps = view.head_dim,
         .step_bytes = block * Source::bytes,
         .first_bytes = lane % block * Source::bytes,
         .second_bytes =
             strip_lanes <= block ? strip_lanes / 2 * Source::bytes : panel[1] - panel[0],
         .begin = 0,
         .end = view.head_dim,
         .c = scores,
         .c_stride = graph::attention_partition},
        n_queries);
  }
}

struct Queries {
  std::int64_t first;
  std::int64_t n;
};

/// Adds values [first, end) as far as they lie in the chunk.
template <class Source>
[[HEARTH_TARGET]] void add_values(const AttendView& view, std::int64_t chunk,
                                  const ChunkPanels& panels, std::int64_t first, std::int64_t end,
                                  const Queries& queries) {
  first = std::max(first, chunk);
  end = std::min(end, chunk + attend_chunk);
  if (first >= end) {
    return;
  }
  const std::int64_t stride = graph::value_stride(view.head_dim);
  for (std::int64_t d = 0; d < stride; d += strip_lanes) {
    multiply_strip_rows<Source>({.a = view.scores_of(queries.first) + chunk - view.begin,
                                 .a_stride = graph::attention_partition,
                                 .panels = panels.data(),
                                 .panel_steps = graph::kv_block_tokens,
                                 .step_bytes = stride * Source::bytes,
                                 .first_bytes = d * Source::bytes,
                                 .second_bytes = strip_lanes / 2 * Source::bytes,
                                 .begin = first - chunk,
                                 .end = end - chunk,
                                 .c = view.partial(queries.first) + d,
                                 .c_stride = partial_floats(view.head_dim)},
                                queries.n);
  }
}

/// Keys that all rows see; rows see further ones before and behind them.
struct CommonKeys {
  std::int64_t first;
  std::int64_t end;
};

inline CommonKeys common_keys(const AttendView& view) {
  const std::int64_t n_rows = view.task.n_rows;
  const std::int64_t first = view.keys_of(n_rows - 1).first;
  const std::int64_t last = view.keys_of(0).last;
  if (first <= last) {
    return {first, last + 1};
  }
  const std::int64_t end = view.keys_of(n_rows - 1).last + 1;
  return {end, end};
}

template <class Source>
[[HEARTH_TARGET]] void attend_with(const AttendView& view) {
  const std::int64_t n_rows = view.task.n_rows;
  const std::int64_t n_queries = n_rows * view.group;
  const std::int64_t start = view.keys_of(0).first / attend_chunk * attend_chunk;
  const std::int64_t last = view.keys_of(n_rows - 1).last;
  for (std::int64_t chunk = start; chunk <= last; chunk += attend_chunk) {
    add_scores<Source>(view, chunk);
  }
  for (std::int64_t query = 0; query < n_queries; ++query) {
    const KeyRange keys = view.keys_of(query / view.group);
    float* partial = view.partial(query);
    std::fill_n(partial, graph::value_stride(view.head_dim), 0.0f);
    if (keys.first <= keys.last) {
      const std::int64_t block = keys.first / graph::kv_block_tokens * graph::kv_block_tokens;
      weigh(view.scores_of(query) + block - view.begin, keys.first - block, keys.last + 1 - block,
            view.task.params->scale, partial + partial_maximum(view.head_dim),
            partial + partial_sum(view.head_dim));
    }
  }
  const CommonKeys common = common_keys(view);
  const auto rows_alone = [&](std::int64_t chunk, const ChunkPanels& panels, std::int64_t first,
                              std::int64_t end) {
    for (std::int64_t row = 0; row < n_rows; ++row) {
      const KeyRange keys = view.keys_of(row);
      add_values<Source>(view, chunk, panels, std::max(first, keys.first),
                         std::min(end, keys.last + 1), {row * view.group, view.group});
    }
  };
  for (std::int64_t chunk = start; chunk <= last; chunk += attend_chunk) {
    const ChunkPanels panels = chunk_panels(view, CacheHalf::values, chunk);
    rows_alone(chunk, panels, 0, common.first);
    add_values<Source>(view, chunk, panels, common.first, common.end, {0, n_queries});
    rows_alone(chunk, panels, common.end, last + 1);
  }
}

[[HEARTH_TARGET]] void attend(const AttendTask& task) {
  const AttendView view(task);
  if (task.kv->desc().dtype == DType::f16) {
    attend_with<Halves>(view);
  } else {
    attend_with<Singles>(view);  // stored so, or widened
  }
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
