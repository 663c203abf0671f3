#include "backend/gpu/executor/device_weights.h"

#include <gtest/gtest.h>

#include "backend/gpu/emulator/emulator_device.h"
#include "tests/backend/gpu/kernels/weight_types.h"
#include "tests/graph/tiny_model.h"

namespace hearth::backend::gpu {
namespace {

Contents download(Device& device, const BufferPart& part) {
  Contents bytes(part.bytes);
  EXPECT_TRUE(device.download(bytes, part));
  return bytes;
}

TEST(DeviceWeights, MakesTheSameTilesHoweverLittleOfThemIsOnItsWay) {
  graph::RandomWeights weights(1);
  weights.add("matrix", quant::find("Q4_K")->dtype, {100, 512});
  weights.add("experts", quant::find("Q6_K")->dtype, {5, 40, 256});
  weights.add("few", quant::find("Q5_K")->dtype, {7, 9, 256});
  weights.add("small blocks", quant::find("Q8_0")->dtype, {5, 33, 512});
  weights.add("odd blocks", quant::find("MXFP4")->dtype, {20, 512});
  weights.add("untiled", quant::find("Q4_1")->dtype, {20, 256});
  weights.add("no whole tiles", quant::find("Q8_0")->dtype, {20, 288});
  constexpr std::size_t n_tiled = 5;
  // All at once; a few matrices; strips of one; less than a strip, of which one goes all the same.
  for (const std::int64_t staging : {1 << 20, 20'000, 7'000, 1}) {
    SCOPED_TRACE(staging);
    const auto device = emulator::open_emulator_device({.is_late = true});
    const auto uploaded = DeviceWeights::create(*device, weights.table(), staging);
    ASSERT_TRUE(uploaded) << uploaded.error().message;
    for (std::size_t i = 0; i < weights.table().size(); ++i) {
      const auto id = graph::WeightId{static_cast<std::int32_t>(i)};
      const TensorView& tensor = weights.table()[i].tensor;
      EXPECT_EQ(uploaded->is_tiled(id), i < n_tiled);
      EXPECT_EQ(download(*device, uploaded->part(id)),
                i < n_tiled ? tiled(tensor) : Contents(tensor.data.begin(), tensor.data.end()))
          << weights.table()[i].name;
    }
  }
}

TEST(DeviceWeights, LeavesBlocksAsTheyAreWhereTilesAreNoUse) {
  graph::RandomWeights weights(1);
  weights.add("matrix", quant::find("Q4_K")->dtype, {20, 512});
  const auto device = emulator::open_emulator_device({.has_integer_tiles = false});
  const auto uploaded = DeviceWeights::create(*device, weights.table());
  ASSERT_TRUE(uploaded) << uploaded.error().message;
  const TensorView& tensor = weights.table()[0].tensor;
  EXPECT_FALSE(uploaded->is_tiled(graph::WeightId{0}));
  EXPECT_EQ(download(*device, uploaded->part(graph::WeightId{0})),
            Contents(tensor.data.begin(), tensor.data.end()));
}

}  // namespace
}  // namespace hearth::backend::gpu
