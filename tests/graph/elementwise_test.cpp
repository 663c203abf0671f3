/// Add, Mul, Activation, Softcap and SelectRows: ops whose definition is one line.

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/graph/op_runner.h"

namespace hearth::graph {
namespace {

TEST(Add, AddsElementByElement) {
  const Matrix a = random_matrix(3, 5, 1);
  const Matrix b = random_matrix(3, 5, 2);
  const auto out = run_op(Add{}, {}, {a, b}).value();
  for (std::size_t i = 0; i < out.data.size(); ++i) {
    EXPECT_EQ(out.data[i], a.data[i] + b.data[i]);
  }
}

TEST(Mul, MultipliesElementByElement) {
  const Matrix a = random_matrix(3, 5, 1);
  const Matrix b = random_matrix(3, 5, 2);
  const auto out = run_op(Mul{}, {}, {a, b}).value();
  for (std::size_t i = 0; i < out.data.size(); ++i) {
    EXPECT_EQ(out.data[i], a.data[i] * b.data[i]);
  }
}

TEST(Mul, MultipliesARowByItsOneNumber) {
  const Matrix a = random_matrix(3, 5, 1);
  const Matrix b = random_matrix(3, 1, 2);
  const auto out = run_op(Mul{}, {}, {a, b}).value();
  for (std::int64_t row = 0; row < 3; ++row) {
    for (std::int64_t i = 0; i < 5; ++i) {
      EXPECT_EQ(out.at(row, i), a.at(row, i) * b.at(row, 0));
    }
  }
}

TEST(Add, RefusesOperandsOfDifferentShape) {
  const auto out = run_op(Add{}, {}, {random_matrix(1, 5, 1), random_matrix(1, 6, 2)});
  ASSERT_FALSE(out.has_value());
  EXPECT_THAT(out.error().message, testing::HasSubstr("add: operands are [1, 5] and [1, 6]"));
}

TEST(Mul, RefusesOperandsOfDifferentShape) {
  const auto out = run_op(Mul{}, {}, {random_matrix(2, 5, 1), random_matrix(1, 5, 2)});
  ASSERT_FALSE(out.has_value());
  EXPECT_THAT(out.error().message, testing::HasSubstr("mul: operands are [2, 5] and [1, 5]"));
}

TEST(Activation, IsSilu) {
  const Matrix x = random_matrix(2, 50, 1);
  const auto out = run_op(Activation{ActivationKind::silu}, {}, {x}).value();
  for (std::size_t i = 0; i < x.data.size(); ++i) {
    const auto value = static_cast<double>(x.data[i]);
    EXPECT_NEAR(out.data[i], value / (1.0 + std::exp(-value)), 4e-7);
  }
}

TEST(Activation, IsTheSigmoid) {
  const Matrix x = random_matrix(2, 50, 1);
  const auto out = run_op(Activation{ActivationKind::sigmoid}, {}, {x}).value();
  for (std::size_t i = 0; i < x.data.size(); ++i) {
    EXPECT_NEAR(out.data[i], 1.0 / (1.0 + std::exp(-static_cast<double>(x.data[i]))), 4e-7);
  }
}

TEST(Activation, IsGeluInItsTanhForm) {
  const Matrix x = random_matrix(2, 50, 1);
  const auto out = run_op(Activation{ActivationKind::gelu_tanh}, {}, {x}).value();
  for (std::size_t i = 0; i < x.data.size(); ++i) {
    const auto value = static_cast<double>(x.data[i]);
    const double inner = 0.7978845608028654 * (value + 0.044715 * value * value * value);
    EXPECT_NEAR(out.data[i], 0.5 * value * (1.0 + std::tanh(inner)), 4e-7);
  }
}

TEST(Softcap, BendsTowardsTheCap) {
  Matrix x = random_matrix(2, 50, 1);
  for (auto& value : x.data) {
    value *= 100.0f;
  }
  const auto out = run_op(Softcap{30.0f}, {}, {x}).value();
  for (std::size_t i = 0; i < x.data.size(); ++i) {
    EXPECT_NEAR(out.data[i], 30.0 * std::tanh(static_cast<double>(x.data[i]) / 30.0), 30 * 3e-7);
  }
}

TEST(Softcap, RefusesACapThatIsNotPositive) {
  for (const float cap : {0.0f, -1.0f, std::nanf("")}) {
    const auto out = run_op(Softcap{cap}, {}, {random_matrix(1, 5, 1)});
    ASSERT_FALSE(out.has_value());
    EXPECT_THAT(out.error().message, testing::HasSubstr("softcap: cap is"));
  }
}

TEST(SelectRows, KeepsTheRowsThatAskForLogits) {
  const Matrix x = random_matrix(5, 7, 1);
  OwnedStep step(5);
  step.logit_rows = {1, 4};
  const auto out = run_op(SelectRows{2}, {}, {x}, step).value();
  ASSERT_EQ(out.rows, 2);
  for (std::int64_t i = 0; i < 7; ++i) {
    EXPECT_EQ(out.at(0, i), x.at(1, i));
    EXPECT_EQ(out.at(1, i), x.at(4, i));
  }
}

}  // namespace
}  // namespace hearth::graph
