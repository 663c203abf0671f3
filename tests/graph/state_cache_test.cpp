#include "graph/state_cache.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth::graph {
namespace {

StateCacheDesc two_layers() {
  return {3,
          {{.n_heads = 2, .key_dim = 8, .value_dim = 16, .conv_channels = 10, .conv_taps = 4},
           {.n_heads = 1, .key_dim = 4, .value_dim = 32, .conv_channels = 7, .conv_taps = 3}}};
}

TEST(StateCache, HoldsMemoriesAndRingsOfEveryLayerInASlot) {
  // Sizes of a published model with 32 value heads of 128 x 128 and 8192 channels, 30 layers.
  const StateCacheDesc desc{1,
                            {30, StateLayer{.n_heads = 32,
                                            .key_dim = 128,
                                            .value_dim = 128,
                                            .conv_channels = 8192,
                                            .conv_taps = 4}}};
  EXPECT_EQ(desc.bytes(), 65'863'680);
}

TEST(StateCache, CopiesAWholeSlotAndNoOther) {
  HostStateCache cache(two_layers());
  for (std::int64_t slot = 0; slot < 3; ++slot) {
    for (std::int64_t layer = 0; layer < 2; ++layer) {
      const auto& shape = cache.desc().layers[static_cast<std::size_t>(layer)];
      const auto value = static_cast<float>(10 * slot + layer);
      std::fill_n(cache.memory(layer, slot), shape.memory_floats(), value);
      std::fill_n(cache.ring(layer, slot), shape.ring_floats(), -value);
    }
  }
  cache.copy(0, 2);
  for (std::int64_t layer = 0; layer < 2; ++layer) {
    const auto& shape = cache.desc().layers[static_cast<std::size_t>(layer)];
    const auto is = [&](std::int64_t slot, float value) {
      const float* memory = cache.memory(layer, slot);
      const float* ring = cache.ring(layer, slot);
      return std::all_of(memory, memory + shape.memory_floats(),
                         [&](float x) { return x == value; }) &&
             std::all_of(ring, ring + shape.ring_floats(), [&](float x) { return x == -value; });
    };
    EXPECT_TRUE(is(0, static_cast<float>(layer)));
    EXPECT_TRUE(is(1, static_cast<float>(10 + layer)));
    EXPECT_TRUE(is(2, static_cast<float>(layer)));
  }
}

TEST(StateCache, RefusesHeadsThatAreNoWholeStrips) {
  EXPECT_TRUE(two_layers().check().has_value());
  StateCacheDesc no_heads = two_layers();
  no_heads.layers[1].n_heads = 0;
  StateCacheDesc odd_keys = two_layers();
  odd_keys.layers[1].key_dim = 6;
  StateCacheDesc odd_values = two_layers();
  odd_values.layers[1].value_dim = 24;
  StateCacheDesc one_tap = two_layers();
  one_tap.layers[1].conv_taps = 1;
  for (const auto& desc : {no_heads, odd_keys, odd_values, one_tap}) {
    const auto checked = desc.check();
    ASSERT_FALSE(checked.has_value());
    EXPECT_THAT(checked.error().message, testing::HasSubstr("recurrent layer 1"));
  }
}

}  // namespace
}  // namespace hearth::graph
