#include "plan/placement.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/graph/tiny_model.h"

namespace hearth::plan {
namespace {

/// An embedding table for random graphs to start from.
graph::WeightTable weights() {
  static const std::vector<std::byte> data(9 * 40 * sizeof(float));
  return {{"table", {DType::f32, {9, 40}, data}}};
}

/// A graph of binary and unary ops over values chosen at random among all earlier ones.
graph::Graph random_graph(const graph::WeightTable& table) {
  const auto rows = *rc::gen::inRange<std::int64_t>(1, 20);
  graph::GraphBuilder g(table, {.rows = rows, .logit_rows = 1});
  std::vector<ValueId> values{embed(g, WeightId{0}, 1.0f)};
  const auto any_value = [&] { return *rc::gen::elementOf(values); };
  const auto n_nodes = *rc::gen::inRange(1, 30);
  for (int i = 0; i < n_nodes; ++i) {
    const ValueId a = any_value();
    values.push_back(*rc::gen::arbitrary<bool>() ? add(g, a, any_value()) : softcap(g, 1.0f, a));
  }
  return g.finish(any_value()).value();
}

/// First and last launch during which a value's memory is its own.
struct Lifetime {
  std::size_t begin, end;
};

std::vector<Lifetime> lifetimes(const Plan& plan) {
  std::vector<Lifetime> all(plan.values.size());
  for (std::size_t i = 0; i < plan.launches.size(); ++i) {
    for (const auto value : writes(plan.launches[i])) {
      all[graph::index(value)] = {i, i};
    }
    for (const auto value : reads(plan.launches[i])) {
      all[graph::index(value)].end = i;
    }
  }
  all[graph::index(plan.result)].end = plan.launches.size();
  return all;
}

bool overlap(const Placement& a, const Placement& b) {
  return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

void expect_no_overlap_in_time_and_space(const Plan& plan, std::size_t merged_launches = 1) {
  auto alive = lifetimes(plan);
  for (Lifetime& lifetime : alive) {
    lifetime.end += merged_launches - 1;
  }
  for (std::size_t a = 0; a < plan.values.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      if (plan.placements[a].offset >= 0 && plan.placements[b].offset >= 0 &&
          alive[a].begin <= alive[b].end && alive[b].begin <= alive[a].end) {
        RC_ASSERT(!overlap(plan.placements[a], plan.placements[b]));
      }
    }
  }
}

RC_GTEST_PROP(Placement, NeverOverlapsValuesThatAreAliveTogether, ()) {
  const auto table = weights();
  const auto merged = *rc::gen::inRange<std::size_t>(1, 4);
  const Plan plan = make_plan(random_graph(table), table,
                              {.fuse = *rc::gen::arbitrary<bool>(), .merged_launches = merged});
  expect_no_overlap_in_time_and_space(plan, merged);
}

RC_GTEST_PROP(Placement, GivesEveryWrittenValueItsBytesInsideTheArena, ()) {
  const auto table = weights();
  const Plan plan = make_plan(random_graph(table), table, {});
  for (const auto& launch : plan.launches) {
    for (const auto value : writes(launch)) {
      const auto& place = plan.placements[graph::index(value)];
      const auto& desc = plan.values[graph::index(value)];
      RC_ASSERT(place.bytes >= desc.rows * desc.features * 4);
      RC_ASSERT(place.offset % 256 == 0);
      RC_ASSERT(place.offset >= 0 && place.offset + place.bytes <= plan.cost.arena_bytes);
    }
  }
}

TEST(Placement, NeedsNoMoreArenaForMoreLayers) {
  const graph::RowBucket bucket{.rows = 64, .logit_rows = 64};
  for (const auto family : {graph::Family::llama, graph::Family::gemma}) {
    std::vector<std::int64_t> arena_bytes;
    for (const std::int64_t n_layers : {1, 8}) {
      const graph::TinyModel model(family, {.n_layers = n_layers}, {DType::f16});
      arena_bytes.push_back(make_plan(model.record(bucket), model.weights(), {}).cost.arena_bytes);
    }
    EXPECT_EQ(arena_bytes[0], arena_bytes[1]);
  }
}

TEST(Placement, KeepsModelGraphsApart) {
  for (const bool fuse : {false, true}) {
    const graph::TinyModel model(graph::Family::gemma, {}, {DType::f16});
    const Plan plan = make_plan(model.record({16, 4}), model.weights(), {.fuse = fuse});
    EXPECT_NO_THROW(expect_no_overlap_in_time_and_space(plan));
  }
}

}  // namespace
}  // namespace hearth::plan
