#include "graph/kv_cache.h"

#include <vector>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/half.h"

namespace hearth::graph {
namespace {

constexpr std::int64_t n_tokens = 40;  // two blocks and a half

float key_of(std::size_t layer, std::int64_t position, std::int64_t head, std::int64_t d) {
  return static_cast<float>(layer) * 1000 + static_cast<float>(position) +
         static_cast<float>(head) * 0.25f + static_cast<float>(d) * 0.03125f;
}

class KvCacheTypes : public testing::TestWithParam<DType> {};

TEST_P(KvCacheTypes, ReturnWhatWasWrittenWhateverTheOrderOfBlocks) {
  // Layers of different shape; rounding of the stored type is what half.h does, tested there.
  HostKvCache cache({GetParam(), 4, {{2, 8}, {1, 12}}});
  const std::vector<std::int32_t> table{3, 0, 2};
  for (const std::size_t layer : {1u, 0u}) {
    const auto& shape = cache.desc().layers[layer];
    for (std::int64_t position = n_tokens - 1; position >= 0; --position) {
      for (std::int64_t head = 0; head < shape.n_kv_heads; ++head) {
        std::vector<float> key, value;
        for (std::int64_t d = 0; d < shape.head_dim; ++d) {
          key.push_back(key_of(layer, position, head, d));
          value.push_back(-key.back());
        }
        cache.write(layer, table.data(), position, head, key.data(), value.data());
      }
    }
  }
  for (const std::size_t layer : {0u, 1u}) {
    const auto& shape = cache.desc().layers[layer];
    for (std::int64_t position = 0; position < n_tokens; ++position) {
      for (std::int64_t head = 0; head < shape.n_kv_heads; ++head) {
        std::vector<float> key(static_cast<std::size_t>(shape.head_dim));
        std::vector<float> value(key.size());
        cache.read(layer, table.data(), position, head, key.data(), value.data());
        for (std::int64_t d = 0; d < shape.head_dim; ++d) {
          const float exact = key_of(layer, position, head, d);
          const float stored = GetParam() == DType::f32   ? exact
                               : GetParam() == DType::f16 ? to_float(to_half(exact))
                                                          : to_float(to_bfloat16(exact));
          ASSERT_EQ(key[static_cast<std::size_t>(d)], stored);
          ASSERT_EQ(value[static_cast<std::size_t>(d)], -stored);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(KvCache, KvCacheTypes,
                         testing::Values(DType::f32, DType::f16, DType::bf16),
                         [](const auto& each) {
                           return each.param == DType::f32   ? "F32"
                                  : each.param == DType::f16 ? "F16"
                                                             : "BF16";
                         });

TEST(KvCache, InterleavesTheKeysOf16PositionsAndKeepsValuesInRows) {
  HostKvCache cache({DType::f32, 1, {{1, 4}}});
  const std::vector<float> key{1, 2, 3, 4};
  const std::vector<float> value{5, 6, 7, 8};
  const std::vector<std::int32_t> table{0};
  cache.write(0, table.data(), 9, 0, key.data(), value.data());
  for (std::size_t d = 0; d < 4; ++d) {
    EXPECT_EQ(load<float>(cache.keys(0, 0, 0), (d * 16 + 9) * 4), key[d]);
    EXPECT_EQ(load<float>(cache.values(0, 0, 0), (9 * 32 + d) * 4), value[d]);  // padded to 32
  }
}

TEST(KvCache, CountsItsBytesOverAllLayers) {
  const KvCacheDesc desc{DType::f16, 10, {{2, 64}, {1, 128}}};
  EXPECT_EQ(desc.bytes_per_token(), 2 * (2 * 64 + 128) * 2);
  EXPECT_EQ(desc.bytes(), desc.bytes_per_token() * 160);
}

TEST(KvCache, AbortsOnABlockThatItDoesNotHave) {
  HostKvCache cache({DType::f32, 2, {{1, 4}}});
  const std::vector<float> row(4);
  const std::vector<std::int32_t> table{2};
  EXPECT_DEATH(cache.write(0, table.data(), 0, 0, row.data(), row.data()), "internal error");
}

}  // namespace
}  // namespace hearth::graph
