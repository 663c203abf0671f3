#include "graph/ops/attention.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/graph/op_runner.h"

namespace hearth::graph {
namespace {

struct Shape4 {
  std::int64_t n_heads, n_kv_heads, head_dim, window;
};

AttentionParams params_of(const Shape4& shape) {
  return {.layer = 0,
          .n_heads = shape.n_heads,
          .n_kv_heads = shape.n_kv_heads,
          .head_dim = shape.head_dim,
          .scale = 0.7f,
          .window = shape.window};
}

/// Whole prompt in one step; softmax(scale q K^T) V in double precision.
void expect_attention(const Shape4& shape, std::int64_t n_rows) {
  const AttentionParams params = params_of(shape);
  const Matrix q = random_matrix(n_rows, shape.n_heads * shape.head_dim, 1);
  const Matrix k = random_matrix(n_rows, shape.n_kv_heads * shape.head_dim, 2);
  const Matrix v = random_matrix(n_rows, shape.n_kv_heads * shape.head_dim, 3);
  OwnedStep step(n_rows);
  step.table_stride = n_rows / kv_block_tokens + 1;
  step.block_tables.resize(static_cast<std::size_t>(step.table_stride));
  std::iota(step.block_tables.rbegin(), step.block_tables.rend(), 0);  // last block first
  HostKvCache kv({DType::f32, step.table_stride, {{shape.n_kv_heads, shape.head_dim}}});
  const auto out = run_op(Attention{params}, {}, {q, k, v}, step, kv).value();

  for (std::int64_t row = 0; row < n_rows; row += row < 40 ? 1 : 37) {
    const std::int64_t first =
        shape.window == 0 ? 0 : std::max<std::int64_t>(0, row - shape.window + 1);
    for (std::int64_t head = 0; head < shape.n_heads; ++head) {
      const std::int64_t kv_start = head / (shape.n_heads / shape.n_kv_heads) * shape.head_dim;
      std::vector<double> weights;
      double sum = 0;
      for (std::int64_t key = first; key <= row; ++key) {
        double score = 0;
        for (std::int64_t d = 0; d < shape.head_dim; ++d) {
          score += static_cast<double>(q.at(row, head * shape.head_dim + d)) *
                   static_cast<double>(k.at(key, kv_start + d));
        }
        weights.push_back(std::exp(static_cast<double>(params.scale) * score));
        sum += weights.back();
      }
      for (std::int64_t d = 0; d < shape.head_dim; ++d) {
        double expected = 0;
        for (std::int64_t key = first; key <= row; ++key) {
          expected += weights[static_cast<std::size_t>(key - first)] / sum *
                      static_cast<double>(v.at(key, kv_start + d));
        }
        ASSERT_NEAR(out.at(row, head * shape.head_dim + d), expected, 4e-6)
            << "row " << row << ", head " << head;
      }
    }
  }
}

TEST(Attention, OfOneRowReturnsItsValue) {
  expect_attention({1, 1, 4, 0}, 1);
}

TEST(Attention, SharesKeyValueHeadsBetweenQueryHeads) {
  expect_attention({6, 2, 8, 0}, 40);
}

TEST(Attention, SeesOnlyItsWindow) {
  expect_attention({2, 2, 8, 5}, 40);
}

TEST(Attention, MergesPartitionsOf512Keys) {
  expect_attention({1, 1, 4, 0}, 1100);
}

TEST(Attention, StartsAWindowInsideAPartition) {
  expect_attention({1, 1, 4, 600}, 1100);
}

TEST(Attention, OfASequenceDoesNotSeeTheOthersOfTheStep) {
  const AttentionParams params = params_of({1, 1, 4, 0});
  const Matrix q = random_matrix(6, 4, 1);
  const Matrix k = random_matrix(6, 4, 2);
  const Matrix v = random_matrix(6, 4, 3);
  OwnedStep alone(6);
  HostKvCache kv({DType::f32, 3, {{1, 4}}});
  const auto expected = run_op(Attention{params}, {}, {q, k, v}, alone, kv).value();

  // Rows 0-5 of the sequence at even places, another sequence between them.
  OwnedStep mixed(12);
  Matrix mixed_q = random_matrix(12, 4, 4);
  Matrix mixed_k = random_matrix(12, 4, 5);
  Matrix mixed_v = random_matrix(12, 4, 6);
  for (std::size_t row = 0; row < 12; ++row) {
    mixed.positions[row] = static_cast<std::int32_t>(row / 2);
    mixed.sequences[row] = row % 2 == 0 ? 1 : 0;
  }
  for (std::size_t row = 0; row < 6; ++row) {
    std::copy_n(&q.data[row * 4], 4, &mixed_q.data[row * 8]);
    std::copy_n(&k.data[row * 4], 4, &mixed_k.data[row * 8]);
    std::copy_n(&v.data[row * 4], 4, &mixed_v.data[row * 8]);
  }
  mixed.block_tables = {2, 1};
  const auto out = run_op(Attention{params}, {}, {mixed_q, mixed_k, mixed_v}, mixed, kv).value();
  for (std::int64_t row = 0; row < 6; ++row) {
    for (std::int64_t d = 0; d < 4; ++d) {
      EXPECT_EQ(out.at(2 * row, d), expected.at(row, d));
    }
  }
}

TEST(Attention, RefusesHeadsThatDoNotShareEvenly) {
  const auto out = run_op(Attention{params_of({4, 3, 2, 0})}, {},
                          {random_matrix(1, 8, 1), random_matrix(1, 6, 2), random_matrix(1, 6, 3)});
  ASSERT_FALSE(out.has_value());
  EXPECT_THAT(out.error().message, testing::HasSubstr("3 key/value heads do not divide 4"));
}

TEST(Attention, RefusesInputsOfOtherSizes) {
  const auto out = run_op(Attention{params_of({4, 2, 2, 0})}, {},
                          {random_matrix(1, 8, 1), random_matrix(1, 4, 2), random_matrix(1, 6, 3)});
  ASSERT_FALSE(out.has_value());
  EXPECT_THAT(out.error().message, testing::HasSubstr("8, 4, 6 features, expected 8, 4, 4"));
}

TEST(Attention, RefusesANegativeWindow) {
  const auto out = run_op(Attention{params_of({1, 1, 2, -1})}, {},
                          {random_matrix(1, 2, 1), random_matrix(1, 2, 2), random_matrix(1, 2, 3)});
  ASSERT_FALSE(out.has_value());
  EXPECT_THAT(out.error().message, testing::HasSubstr("window -1"));
}

}  // namespace
}  // namespace hearth::graph
