#include "backend/gpu/kernels/attention.h"

#include <numeric>

#include <gtest/gtest.h>

#include "tests/backend/gpu/kernels/kernel_runner.h"
#include "tests/graph/op_runner.h"

namespace hearth::backend::gpu {
namespace {

using graph::Matrix;
using graph::random_matrix;

struct Layer {
  std::int64_t n_heads, n_kv_heads, head_dim, window;
};

/// A layer with its cache: a first sequence of many rows, and a second one between its blocks.
class GpuAttention {
 public:
  explicit GpuAttention(const Layer& layer)
      : layer_(layer),
        params_{.layer = 0,
                .n_heads = layer.n_heads,
                .n_kv_heads = layer.n_kv_heads,
                .head_dim = layer.head_dim,
                .scale = 0.3f,
                .window = layer.window} {}

  /// y of the given rows of both sequences, after all rows before them were stored.
  struct Outputs {
    std::vector<float> gpu;
    std::vector<float> reference;
  };

  Outputs run(std::int32_t n_first, std::int32_t n_second, std::int32_t n_queries) {
    const auto blocks = [](std::int32_t n) { return n / graph::kv_block_tokens + 1; };
    const std::int32_t stride = std::max(blocks(n_first), blocks(n_second));
    graph::OwnedStep step(0);
    step.table_stride = stride;
    step.block_tables.resize(2 * static_cast<std::size_t>(stride));
    std::iota(step.block_tables.rbegin(), step.block_tables.rend(), 0);
    for (std::int32_t position = 0; position < n_first; ++position) {
      add_row(step, position, 0);
    }
    for (std::int32_t position = 0; position < n_second; ++position) {
      add_row(step, position, 1);
    }
    const std::int64_t rows = n_first + n_second;
    const std::int64_t kv_features = layer_.n_kv_heads * layer_.head_dim;
    const Matrix q = random_matrix(rows, layer_.n_heads * layer_.head_dim, 1);
    const Matrix k = random_matrix(rows, kv_features, 2);
    const Matrix v = random_matrix(rows, kv_features, 3);
    graph::HostKvCache cache(
        {DType::f16, 2 * step.table_stride, {{layer_.n_kv_heads, layer_.head_dim}}});
    const auto reference =
        graph::run_op(graph::Attention{params_}, {}, {q, k, v}, step, cache).value();

    // The queries are the last rows of the first sequence, and of the second.
    std::vector<std::size_t> queries;
    for (std::int32_t i = n_queries; i > 0; --i) {
      queries.push_back(static_cast<std::size_t>(n_first - i));
    }
    queries.push_back(static_cast<std::size_t>(rows - 1));
    return {.gpu = run_gpu(step, q, k, v, queries), .reference = rows_of(reference, queries)};
  }

 private:
  static void add_row(graph::OwnedStep& step, std::int32_t position, std::int32_t sequence) {
    step.tokens.push_back(TokenId{0});
    step.positions.push_back(position);
    step.sequences.push_back(sequence);
  }

  static std::vector<float> rows_of(const Matrix& x, const std::vector<std::size_t>& rows) {
    std::vector<float> result;
    for (const std::size_t row : rows) {
      const auto begin = x.data.begin() + static_cast<std::int64_t>(row) * x.features;
      result.insert(result.end(), begin, begin + x.features);
    }
    return result;
  }
  static std::vector<std::int32_t> pick(const std::vector<std::int32_t>& from,
                                        const std::vector<std::size_t>& rows) {
    std::vector<std::int32_t> result;
    for (const std::size_t row : rows) {
      result.push_back(from[row]);
    }
    return result;
  }

  std::vector<float> run_gpu(const graph::OwnedStep& step, const Matrix& q, const Matrix& k,
                             const Matrix& v, const std::vector<std::size_t>& queries) const {
    const auto n_kv_heads = static_cast<u32>(layer_.n_kv_heads);
    const auto n_heads = static_cast<u32>(layer_.n_heads);
    const auto head_dim = static_cast<u32>(layer_.head_dim);
    const auto stride = static_cast<u32>(step.table_stride);
    const Contents cache(std::size_t{2} * stride * n_kv_heads * ATTENTION_BLOCK_KEYS * head_dim * 2,
                         std::byte{0xff});
    const auto stored = run_everywhere(
        call(KernelId::kv_store_f16,
             {contents(k.data), contents(v.data), contents(step.positions),
              contents(step.sequences), contents(step.block_tables), cache, cache},
             KvStoreParams{n_kv_heads, head_dim, stride}, {static_cast<u32>(k.rows)}, {32}));

    const auto positions = pick(step.positions, queries);
    const auto last = static_cast<u32>(*std::max_element(positions.begin(), positions.end()));
    const AttentionPartParams params{.n_heads = n_heads,
                                     .n_kv_heads = n_kv_heads,
                                     .head_dim = head_dim,
                                     .n_parts = last / ATTENTION_PART_KEYS + 1,
                                     .table_stride = stride,
                                     .window = static_cast<u32>(layer_.window),
                                     .scale = params_.scale};
    const auto n_queries = static_cast<u32>(queries.size());
    const std::size_t n_heads_all = std::size_t{n_queries} * n_heads;
    const auto parts = run_everywhere(
        call(KernelId::attention_part_f16,
             {contents(rows_of(q, queries)), contents(positions),
              contents(pick(step.sequences, queries)), contents(step.block_tables), stored[5],
              stored[6], poisoned(n_heads_all * params.n_parts * (head_dim + 2))},
             params, {params.n_parts, n_heads, n_queries}, {128}));
    const auto combined =
        run_everywhere(call(KernelId::attention_combine_f32,
                            {parts[6], contents(positions), poisoned(n_heads_all * head_dim)},
                            params, {n_heads, n_queries}, {32}));
    return values<float>(combined[2]);
  }

  Layer layer_;
  graph::AttentionParams params_;
};

TEST(GpuAttention, AgreesWithTheReferenceOverAPagedCache) {
  for (const std::int32_t length : shapes({1, 16, 64, 150, 65})) {
    const auto outputs = GpuAttention({4, 2, 64, 0}).run(length, 9, 1);
    EXPECT_LT(relative_error(outputs.gpu, outputs.reference), 1e-6) << length;
  }
}

TEST(GpuAttention, SeesOnlyItsWindow) {
  for (const std::int64_t window : shapes<std::int64_t>({1, 64, 70, 5})) {
    const auto outputs = GpuAttention({2, 1, 32, window}).run(80, 3, 1);
    EXPECT_LT(relative_error(outputs.gpu, outputs.reference), 1e-6) << window;
  }
}

// Rows that check guesses see different lengths; each has the bits that it has alone.
TEST(GpuAttention, GivesARowTheSameBitsAloneAndInAWindowOfGuesses) {
  GpuAttention attention({2, 1, 32, 0});
  const auto three = attention.run(66, 3, 3).gpu;
  const auto one = attention.run(66, 3, 1).gpu;
  EXPECT_EQ(std::vector(three.begin() + 128, three.end()), one);
}

}  // namespace
}  // namespace hearth::backend::gpu
