#include "graph/ops/row_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/graph/op_runner.h"

namespace hearth::graph {
namespace {

using testing::ElementsAre;

TEST(StoreRows, PutsRowsWhereTheStepSaysAndHandsThemOn) {
  HostRowStore store({.n_rows = 4, .features = 2});
  OwnedStep step(2);
  step.row_targets = {3, 1};
  const Matrix x{2, 2, {1, 2, 3, 4}};
  EXPECT_EQ(run_op(StoreRows{}, {}, {x}, step, store).value().data, x.data);
  EXPECT_THAT(std::span(store.row(3), 2), ElementsAre(1, 2));
  EXPECT_THAT(std::span(store.row(1), 2), ElementsAre(3, 4));
}

TEST(StoreRows, LeavesOutRowsThatNobodyWillLoad) {
  HostRowStore store({.n_rows = 2, .features = 1});
  store.row(0)[0] = store.row(1)[0] = 7;
  OwnedStep step(2);
  step.row_targets = {-1, 1};
  const Matrix x{2, 1, {1, 2}};
  EXPECT_EQ(run_op(StoreRows{}, {}, {x}, step, store).value().data, x.data);
  EXPECT_EQ(store.row(0)[0], 7);
  EXPECT_EQ(store.row(1)[0], 2);
}

TEST(LoadRows, TakesRowsFromWhereTheStepSays) {
  HostRowStore store({.n_rows = 3, .features = 2});
  for (std::int64_t i = 0; i < 3; ++i) {
    std::fill_n(store.row(i), 2, static_cast<float>(i));
  }
  OwnedStep step(3);
  step.row_sources = {2, 0, 2};
  const auto x = run_op(LoadRows{2}, {}, {}, step, store).value();
  EXPECT_THAT(x.data, ElementsAre(2, 2, 0, 0, 2, 2));
}

}  // namespace
}  // namespace hearth::graph
