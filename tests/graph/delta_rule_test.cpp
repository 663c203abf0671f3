#include "graph/ops/delta_rule.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/graph/op_runner.h"
#include "tests/graph/tiny_model.h"

namespace hearth::graph {
namespace {

/// The formula in double, in the chunked form that prompts are read with on other hardware: an
/// oracle that shares no step with the recurrence.
class ChunkedDeltaRule {
 public:
  /// One value head. q and k are normalised; g are log decays.
  struct Token {
    std::vector<double> q, k, v;
    double g, beta;
  };

  ChunkedDeltaRule(std::size_t key_dim, std::size_t value_dim)
      : memory_(key_dim, std::vector<double>(value_dim)) {}

  /// Outputs of one chunk; updates the memory.
  std::vector<std::vector<double>> read(const std::vector<Token>& chunk) {
    const std::size_t n = chunk.size();
    std::vector<double> sums;  // of log decays
    for (const auto& token : chunk) {
      sums.push_back((sums.empty() ? 0.0 : sums.back()) + token.g);
    }
    // Solves (I + strictly lower part of (beta K K^T decay)) deltas = beta (V - e^G K S).
    std::vector<std::vector<double>> deltas;
    std::vector<std::vector<double>> outputs;
    for (std::size_t t = 0; t < n; ++t) {
      std::vector<double> delta = minus(chunk[t].v, scaled(recall(chunk[t].k), std::exp(sums[t])));
      for (std::size_t s = 0; s < t; ++s) {
        const double seen = dot(chunk[t].k, chunk[s].k) * std::exp(sums[t] - sums[s]);
        delta = minus(delta, scaled(deltas[s], seen));
      }
      deltas.push_back(scaled(delta, chunk[t].beta));
      std::vector<double> out = scaled(recall(chunk[t].q), std::exp(sums[t]));
      for (std::size_t s = 0; s <= t; ++s) {
        const double seen = dot(chunk[t].q, chunk[s].k) * std::exp(sums[t] - sums[s]);
        out = minus(out, scaled(deltas[s], -seen));
      }
      outputs.push_back(out);
    }
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      memory_[i] = scaled(memory_[i], std::exp(sums.back()));
      for (std::size_t t = 0; t < n; ++t) {
        const double kept = chunk[t].k[i] * std::exp(sums.back() - sums[t]);
        memory_[i] = minus(memory_[i], scaled(deltas[t], -kept));
      }
    }
    return outputs;
  }

 private:
  static double dot(const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      sum += a[i] * b[i];
    }
    return sum;
  }
  static std::vector<double> scaled(std::vector<double> x, double factor) {
    for (auto& each : x) {
      each *= factor;
    }
    return x;
  }
  static std::vector<double> minus(std::vector<double> a, const std::vector<double>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      a[i] -= b[i];
    }
    return a;
  }
  /// S^T x
  [[nodiscard]] std::vector<double> recall(const std::vector<double>& x) const {
    std::vector<double> y(memory_.front().size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      y = minus(y, scaled(memory_[i], -x[i]));
    }
    return y;
  }

  std::vector<std::vector<double>> memory_;  // [key_dim][value_dim]
};

std::vector<double> unit(const Matrix& x, std::int64_t row, std::int64_t begin, std::int64_t n,
                         double scale) {
  std::vector<double> y;
  double squares = 1e-6;
  for (std::int64_t i = 0; i < n; ++i) {
    y.push_back(static_cast<double>(x.at(row, begin + i)));
    squares += y.back() * y.back();
  }
  for (auto& each : y) {
    each *= scale / std::sqrt(squares);
  }
  return y;
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

class DeltaRule : public testing::TestWithParam<HeadOrder> {
 protected:
  static constexpr std::int64_t n_rows = 21;

  DeltaRule() : weights_(5) {
    op_.params = {.layer = 0,
                  .n_key_heads = 2,
                  .n_value_heads = 6,
                  .key_dim = 8,
                  .value_dim = 32,
                  .order = GetParam()};
    op_.rate = weights_.add_uniform("ssm_a", Shape{6}, -2, -0.01f);
    op_.bias = weights_.add_uniform("ssm_dt", Shape{6}, -1, 1);
    qkv_ = random_matrix(n_rows, 2 * 16 + 6 * 32, 6);
    write_gate_ = random_matrix(n_rows, 6, 7);
    decay_gate_ = random_matrix(n_rows, 6, 8);
  }

  [[nodiscard]] StateCacheDesc states(std::int64_t n_slots) const {
    return {n_slots,
            {{.n_heads = 6, .key_dim = 8, .value_dim = 32, .conv_channels = 1, .conv_taps = 2}}};
  }

  static Matrix rows_of(const Matrix& x, std::int64_t first, std::int64_t n) {
    const auto begin = x.data.begin() + first * x.features;
    return {n, x.features, {begin, begin + n * x.features}};
  }
  Matrix run(HostStateCache& cache, std::int32_t first, std::int64_t n, std::int32_t slot = 0) {
    OwnedStep step(n, first);
    step.state_slots = {slot};
    return run_op(op_, weights_.table(),
                  {rows_of(qkv_, first, n), rows_of(write_gate_, first, n),
                   rows_of(decay_gate_, first, n)},
                  step, cache)
        .value();
  }

  [[nodiscard]] ChunkedDeltaRule::Token token(std::int64_t row, std::int64_t head) const {
    const std::int64_t key_head = GetParam() == HeadOrder::grouped ? head / 3 : head % 2;
    const auto gate = static_cast<double>(decay_gate_.at(row, head)) +
                      static_cast<double>(f32_data(weights_.table(), op_.bias)[head]);
    ChunkedDeltaRule::Token made{
        .q = unit(qkv_, row, key_head * 8, 8, 1 / std::sqrt(8.0)),
        .k = unit(qkv_, row, 16 + key_head * 8, 8, 1),
        .v = {},
        .g = static_cast<double>(f32_data(weights_.table(), op_.rate)[head]) *
             std::log1p(std::exp(gate)),
        .beta = sigmoid(static_cast<double>(write_gate_.at(row, head)))};
    for (std::int64_t j = 0; j < 32; ++j) {
      made.v.push_back(static_cast<double>(qkv_.at(row, 32 + head * 32 + j)));
    }
    return made;
  }

  RandomWeights weights_;
  graph::DeltaRule op_;
  Matrix qkv_, write_gate_, decay_gate_;
};

TEST_P(DeltaRule, AgreesWithTheChunkedFormInDoublePrecision) {
  HostStateCache cache(states(1));
  const Matrix y = run(cache, 0, n_rows);
  for (const std::int64_t chunk : {1, 5, 21}) {
    for (std::int64_t head = 0; head < 6; ++head) {
      ChunkedDeltaRule oracle(8, 32);
      for (std::int64_t row = 0; row < n_rows; row += chunk) {
        std::vector<ChunkedDeltaRule::Token> tokens;
        for (std::int64_t i = row; i < std::min(row + chunk, n_rows); ++i) {
          tokens.push_back(token(i, head));
        }
        const auto expected = oracle.read(tokens);
        for (std::size_t i = 0; i < expected.size(); ++i) {
          for (std::size_t j = 0; j < 32; ++j) {
            ASSERT_NEAR(
                y.at(row + static_cast<std::int64_t>(i), head * 32 + static_cast<std::int64_t>(j)),
                expected[i][j], 1e-6)
                << "chunks of " << chunk << ", head " << head << ", row " << row;
          }
        }
      }
    }
  }
}

TEST_P(DeltaRule, ScalesTheQueryAloneByTheRootOfItsLength) {
  // The first token reads what it has just written: beta v (k . q), and k . q is 1 / sqrt(8) for
  // equal directions, however long they are.
  for (std::int64_t i = 0; i < 16; ++i) {
    qkv_.data[static_cast<std::size_t>(i)] = 3 * qkv_.at(0, 16 + i);
  }
  HostStateCache cache(states(1));
  const Matrix y = run(cache, 0, 1);
  for (std::int64_t head = 0; head < 6; ++head) {
    const double beta = sigmoid(static_cast<double>(write_gate_.at(0, head)));
    for (std::int64_t j = 0; j < 32; ++j) {
      const auto v = static_cast<double>(qkv_.at(0, 32 + head * 32 + j));
      EXPECT_NEAR(y.at(0, head * 32 + j), beta * v / std::sqrt(8.0), 1e-6);
    }
  }
}

TEST_P(DeltaRule, GivesTheSameBitsWhereverThePromptIsCut) {
  HostStateCache whole_cache(states(1));
  const Matrix whole = run(whole_cache, 0, n_rows);
  for (const std::int32_t cut : {1, 2, 7, 20}) {
    HostStateCache cache(states(1));
    auto parts = run(cache, 0, cut).data;
    const auto rest = run(cache, cut, n_rows - cut).data;
    parts.insert(parts.end(), rest.begin(), rest.end());
    EXPECT_EQ(parts, whole.data) << "cut at " << cut;
  }
}

TEST_P(DeltaRule, FindsNothingOfTheSlotsLastOwner) {
  HostStateCache cache(states(2));
  const Matrix first = run(cache, 0, n_rows, 1);
  EXPECT_EQ(run(cache, 0, n_rows, 1).data, first.data);
}

TEST_P(DeltaRule, GoesOnFromASnapshotAsIfNothingHadComeBetween) {
  HostStateCache cache(states(3));
  run(cache, 0, 10, 2);
  cache.copy(2, 0);
  const Matrix expected = run(cache, 10, 11, 2);
  EXPECT_EQ(run(cache, 10, 11, 0).data, expected.data);
}

TEST_P(DeltaRule, KeepsAFadedMemoryFinite) {
  for (auto& each : decay_gate_.data) {
    each = 50;  // decays of e^-50 and less per token
  }
  HostStateCache cache(states(1));
  for (const float each : run(cache, 0, n_rows).data) {
    ASSERT_TRUE(std::isfinite(each));
  }
}

TEST_P(DeltaRule, RefusesInputsOfAnotherWidthAndHeadsThatDoNotDivide) {
  HostStateCache cache(states(1));
  const auto refuse = [&](std::string_view reason) {
    const auto out =
        run_op(op_, weights_.table(), {qkv_, write_gate_, decay_gate_}, OwnedStep(n_rows), cache);
    ASSERT_FALSE(out.has_value());
    EXPECT_THAT(out.error().message, testing::HasSubstr(reason));
  };
  op_.params.value_dim = 16;
  refuse("have 224, 6, 6 features, expected 128, 6, 6");
  op_.params.n_key_heads = 4;
  refuse("4 key heads do not divide 6 value heads");
}

INSTANTIATE_TEST_SUITE_P(, DeltaRule, testing::Values(HeadOrder::grouped, HeadOrder::tiled),
                         [](const auto& each) {
                           return each.param == HeadOrder::grouped ? "Grouped" : "Tiled";
                         });

}  // namespace
}  // namespace hearth::graph
