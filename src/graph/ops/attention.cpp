#include "graph/ops/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/lanes.h"
#include "base/math.h"
#include "graph/builder.h"

namespace hearth::graph {
namespace {

/// Softmax over one partition, not yet normalised.
struct Partial {
  float maximum = -std::numeric_limits<float>::infinity();
  float sum = 0;
  std::vector<float> values;  // [head_dim]
};

/// Keys and values of one head, widened a block at a time.
class HeadReader {
 public:
  HeadReader(const HostKvCache& cache, std::size_t layer, const std::int32_t* block_table,
             std::int64_t head)
      : cache_(cache),
        layer_(layer),
        block_table_(block_table),
        head_(head),
        head_dim_(cache.desc().layers[layer].head_dim),
        keys_(static_cast<std::size_t>(head_dim_ * kv_block_tokens)),
        values_(static_cast<std::size_t>(value_stride(head_dim_) * kv_block_tokens)) {}

  void go_to(std::int64_t position) {
    slot_ = position % kv_block_tokens;
    const std::int64_t block = block_table_[position / kv_block_tokens];
    if (block != block_) {
      block_ = block;
      cache_.read(layer_, block, head_, keys_.data(), values_.data());
    }
  }
  [[nodiscard]] std::int64_t head_dim() const { return head_dim_; }
  /// Element d of the key and value at the position.
  [[nodiscard]] float key(std::int64_t d) const {
    return keys_[static_cast<std::size_t>(d * kv_block_tokens + slot_)];
  }
  [[nodiscard]] float value(std::int64_t d) const {
    return values_[static_cast<std::size_t>(slot_ * value_stride(head_dim_) + d)];
  }

 private:
  const HostKvCache& cache_;
  std::size_t layer_;
  const std::int32_t* block_table_;
  std::int64_t head_;
  std::int64_t head_dim_;
  std::vector<float> keys_;
  std::vector<float> values_;
  std::int64_t block_ = -1;  // the one that is widened
  std::int64_t slot_ = 0;
};

Partial attend_partition(HeadReader& reader, const float* q, float scale, std::int64_t first,
                         std::int64_t last) {
  Partial partial;
  partial.values.resize(static_cast<std::size_t>(reader.head_dim()));
  std::vector<float> scores;
  for (std::int64_t position = first; position <= last; ++position) {
    reader.go_to(position);
    float dot = 0;
    for (std::int64_t d = 0; d < reader.head_dim(); ++d) {
      dot = std::fma(q[d], reader.key(d), dot);
    }
    scores.push_back(scale * dot);
    partial.maximum = scores.back() > partial.maximum ? scores.back() : partial.maximum;
  }
  Lanes sums{};
  for (std::int64_t position = first; position <= last; ++position) {
    const float weight =
        canonical_exp(scores[static_cast<std::size_t>(position - first)] - partial.maximum);
    sums[static_cast<std::size_t>(position) % n_lanes] += weight;
    reader.go_to(position);
    for (std::int64_t d = 0; d < reader.head_dim(); ++d) {
      float& value = partial.values[static_cast<std::size_t>(d)];
      value = std::fma(weight, reader.value(d), value);
    }
  }
  partial.sum = sum_lanes(sums);
  return partial;
}

/// Folds the next partition into what the earlier ones gave.
void merge(Partial& total, const Partial& next) {
  const float maximum = next.maximum > total.maximum ? next.maximum : total.maximum;
  const float keep = canonical_exp(total.maximum - maximum);
  const float take = canonical_exp(next.maximum - maximum);
  total.maximum = maximum;
  total.sum = std::fma(take, next.sum, keep * total.sum);
  for (std::size_t d = 0; d < total.values.size(); ++d) {
    total.values[d] = std::fma(take, next.values[d], keep * total.values[d]);
  }
}

/// Softmax-weighted values of positions [first, last] for one query head.
Partial attend(HeadReader& reader, const float* q, float scale, std::int64_t first,
               std::int64_t last) {
  Partial total;
  for (std::int64_t begin = first; begin <= last;) {
    const std::int64_t part_end = (begin / attention_partition + 1) * attention_partition - 1;
    Partial part = attend_partition(reader, q, scale, begin, std::min(last, part_end));
    if (begin == first) {
      total = std::move(part);
    } else {
      merge(total, part);
    }
    begin = part_end + 1;
  }
  return total;
}

}  // namespace

Result<ValueDesc> Attention::infer(std::span<const ValueDesc> inputs, const WeightTable&,
                                   std::int64_t) const {
  const std::int64_t kv_features = params.n_kv_heads * params.head_dim;
  if (params.n_kv_heads <= 0 || params.n_heads % params.n_kv_heads != 0) {
    return fail(ErrorCode::invalid_argument, "attention: {} key/value heads do not divide {} heads",
                params.n_kv_heads, params.n_heads);
  }
  if (params.head_dim <= 0 || params.window < 0) {
    return fail(ErrorCode::invalid_argument,
                "attention: head length {} and window {}, expected at least 1 and 0",
                params.head_dim, params.window);
  }
  if (inputs[0].features != params.n_heads * params.head_dim || inputs[1].features != kv_features ||
      inputs[2].features != kv_features) {
    return fail(ErrorCode::invalid_argument,
                "attention: q, k, v have {}, {}, {} features, expected {}, {}, {}",
                inputs[0].features, inputs[1].features, inputs[2].features,
                params.n_heads * params.head_dim, kv_features, kv_features);
  }
  return inputs[0];
}

void Attention::run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const {
  const auto layer = static_cast<std::size_t>(params.layer);
  const auto& step = context.step;
  const std::int64_t head_dim = params.head_dim;
  for (std::int64_t row = 0; row < out.rows; ++row) {
    for (std::int64_t head = 0; head < params.n_kv_heads; ++head) {
      context.kv.write(layer, step.block_table(row), step.positions[static_cast<std::size_t>(row)],
                       head, inputs[1].row(row) + head * head_dim,
                       inputs[2].row(row) + head * head_dim);
    }
  }
  for (std::int64_t row = 0; row < out.rows; ++row) {
    const std::int64_t last = step.positions[static_cast<std::size_t>(row)];
    const std::int64_t first = params.first_key(last);
    for (std::int64_t head = 0; head < params.n_heads; ++head) {
      HeadReader reader(context.kv, layer, step.block_table(row),
                        head / (params.n_heads / params.n_kv_heads));
      const float* q = inputs[0].row(row) + head * head_dim;
      const Partial total = attend(reader, q, params.scale, first, last);
      for (std::int64_t d = 0; d < head_dim; ++d) {
        out.row(row)[head * head_dim + d] = total.values[static_cast<std::size_t>(d)] / total.sum;
      }
    }
  }
}

ValueId attention(GraphBuilder& g, const AttentionParams& params, ValueId q, ValueId k, ValueId v) {
  return g.add(Attention{params}, {q, k, v});
}

}  // namespace hearth::graph
