#include "graph/kv_cache.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "quant/registry.h"

namespace hearth::graph {
namespace {

constexpr std::int64_t n_tokens = 40;  // two blocks and a half

float key_of(std::size_t layer, std::int64_t position, std::int64_t head, std::int64_t d) {
  return static_cast<float>(layer) * 1000 + static_cast<float>(position) +
         static_cast<float>(head) * 0.25f + static_cast<float>(d) * 0.03125f;
}

/// Writes `n` tokens to a layer and head, and returns what is read back, key then value per token.
std::vector<std::vector<float>> stored_rows(HostKvCache& cache, std::size_t layer,
                                            std::int64_t head,
                                            const std::vector<std::int32_t>& table) {
  const auto head_dim = static_cast<std::size_t>(cache.desc().layers[layer].head_dim);
  for (std::int64_t position = n_tokens - 1; position >= 0; --position) {
    std::vector<float> key, value;
    for (std::size_t d = 0; d < head_dim; ++d) {
      key.push_back(key_of(layer, position, head, static_cast<std::int64_t>(d)));
      value.push_back(-key.back());
    }
    cache.write(layer, table.data(), position, head, key.data(), value.data());
  }
  const auto stride = static_cast<std::size_t>(value_stride(cache.desc().layers[layer].head_dim));
  std::vector<float> keys(head_dim * kv_block_tokens);
  std::vector<float> values(stride * kv_block_tokens);
  std::vector<std::vector<float>> rows;
  for (std::int64_t position = 0; position < n_tokens; ++position) {
    const std::int32_t block = table[static_cast<std::size_t>(position / kv_block_tokens)];
    const auto slot = static_cast<std::size_t>(position % kv_block_tokens);
    cache.read(layer, block, head, keys.data(), values.data());
    auto& key = rows.emplace_back();
    for (std::size_t d = 0; d < head_dim; ++d) {
      key.push_back(keys[d * kv_block_tokens + slot]);
    }
    const auto* value = &values[slot * stride];
    rows.emplace_back(value, value + head_dim);
  }
  return rows;
}

struct KvType {
  const char* name;
  DType dtype;
  /// Largest error of an element as a part of the largest of its 32.
  float tolerance;
};

class KvCacheTypes : public testing::TestWithParam<KvType> {};

TEST_P(KvCacheTypes, ReturnWhatWasWrittenWhateverTheOrderOfBlocks) {
  HostKvCache cache({GetParam().dtype, 4, {{2, 32}, {1, 96}}});
  for (const std::size_t layer : {1u, 0u}) {
    for (std::int64_t head = 0; head < cache.desc().layers[layer].n_kv_heads; ++head) {
      const auto rows = stored_rows(cache, layer, head, {3, 0, 2});
      for (std::size_t row = 0; row < rows.size(); ++row) {
        for (std::size_t d = 0; d < rows[row].size(); ++d) {
          const float exact =
              key_of(layer, static_cast<std::int64_t>(row / 2), head, static_cast<std::int64_t>(d));
          const float largest = key_of(layer, static_cast<std::int64_t>(row / 2), head,
                                       static_cast<std::int64_t>(d / 32 * 32 + 31));
          ASSERT_NEAR(rows[row][d], row % 2 == 0 ? exact : -exact, GetParam().tolerance * largest);
        }
      }
    }
  }
}

// Floats: half a unit in the last place. Blocks: half a step, and the rounding of the scale.
INSTANTIATE_TEST_SUITE_P(
    KvCache, KvCacheTypes,
    testing::Values(KvType{"F32", DType::f32, 0.0f}, KvType{"F16", DType::f16, 0x1p-11f},
                    KvType{"BF16", DType::bf16, 0x1p-8f},
                    KvType{"Q8_0", quant::find("Q8_0")->dtype, 0.5f / 127 + 0x1p-11f},
                    KvType{"Q4_0", quant::find("Q4_0")->dtype, 0.5f / 8 + 0x1p-11f}),
    [](const auto& each) { return each.param.name; });

TEST(KvCache, RoundsFloatsToNearestEven) {
  HostKvCache cache({DType::f16, 1, {{1, 2}}});
  const std::vector<std::int32_t> table{0};
  const std::vector<float> x{1.0f + 0x1p-11f, 1.0f + 3 * 0x1p-11f};  // ties
  cache.write(0, table.data(), 3, 0, x.data(), x.data());
  std::vector<float> keys(2 * 16);
  std::vector<float> values(32 * 16);
  cache.read(0, 0, 0, keys.data(), values.data());
  EXPECT_EQ(keys[3], 1.0f);
  EXPECT_EQ(values[3 * 32 + 1], 1.0f + 2 * 0x1p-10f);
}

TEST(KvCache, KeepsANanOrInfinityVisibleInQuantizedTypes) {
  for (const auto* name : {"Q8_0", "Q4_0"}) {
    for (const float fault : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
      HostKvCache cache({quant::find(name)->dtype, 1, {{1, 64}}});
      const std::vector<std::int32_t> table{0};
      std::vector<float> x(64, 1.0f);
      x[40] = fault;
      cache.write(0, table.data(), 5, 0, x.data(), x.data());
      std::vector<float> keys(64 * 16);
      std::vector<float> values(64 * 16);
      cache.read(0, 0, 0, keys.data(), values.data());
      EXPECT_TRUE(std::isnan(keys[40 * 16 + 5])) << name;
      EXPECT_TRUE(std::isnan(values[5 * 64 + 40])) << name;
      EXPECT_NEAR(keys[5], 1.0f, 0x1p-11f) << name;  // of the other block
    }
  }
}

TEST(KvCache, NeedsHeadsOfWholeBlocks) {
  EXPECT_TRUE((KvCacheDesc{DType::f16, 1, {{1, 40}}}.check().has_value()));
  const auto result = KvCacheDesc{quant::find("Q8_0")->dtype, 1, {{1, 64}, {1, 80}}}.check();
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message,
            "KV cache of type Q8_0: heads of attention layer 1 have length 80, expected a multiple "
            "of 32");
}

TEST(KvCache, RefusesOtherTypes) {
  const auto result = KvCacheDesc{quant::find("Q6_K")->dtype, 1, {{1, 256}}}.check();
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message, "KV cache of type Q6_K, expected F32, F16, BF16, Q8_0 or Q4_0");
}

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
