#include "backend/gpu/kernels/causal_conv.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/backend/gpu/kernels/kernel_runner.h"
#include "tests/backend/gpu/kernels/recurrent_step.h"
#include "tests/graph/tiny_model.h"

namespace hearth::backend::gpu {
namespace {

constexpr std::int64_t channels = 70;
constexpr std::size_t n_slots = 4;
constexpr std::size_t gap = 5;  // floats of a slot that belong to others

TEST(GpuCausalConv, GivesTheBitsOfTheReferenceAndItsRings) {
  struct Launch {
    std::int64_t taps;
    u32 shares;  // threadgroups that share a sequence's rows
  };
  for (const auto& [taps, shares] : shapes<Launch>({{2, 1}, {4, 2}, {12, 3}, {4, 1}})) {
    SCOPED_TRACE(testing::Message() << taps << " taps, " << shares << " shares");
    graph::RandomWeights weights(3);
    const graph::CausalConv op{0, weights.add_uniform("conv", {channels, taps}, -1, 1)};
    graph::HostStateCache cache({n_slots,
                                 {{.n_heads = 1,
                                   .key_dim = 4,
                                   .value_dim = 16,
                                   .conv_channels = channels,
                                   .conv_taps = taps}}});
    const auto ring_floats = static_cast<std::size_t>((taps - 1) * channels);
    // Nothing of a slot's last owner may be seen.
    Contents rings = poisoned(n_slots * (ring_floats + gap));
    std::uint32_t seed = 1;
    for (const RecurrentStep& each : recurrent_steps()) {
      const graph::Matrix x = graph::random_matrix(each.n_rows(), channels, seed++);
      const auto expected = graph::run_op(op, weights.table(), {x}, each.step, cache).value();
      const auto run = [&](KernelId kernel, Dim3 grid) {
        return run_everywhere(call(
            kernel,
            {counts(each.n_rows(), 0, each.n_sequences()), contents(x.data),
             weights.bytes(op.weight), contents(each.row_starts), contents(each.step.positions),
             contents(each.before), contents(each.after), rings,
             poisoned((each.n_rows() + 1) * std::size_t{channels})},
            CausalConvParams{channels, static_cast<u32>(taps), ring_floats + gap}, grid, {256}));
      };
      const auto results = run(KernelId::causal_conv_f32, {3, each.n_sequences() + 1, shares});
      expect_bits(results[8], expected.data);
      if (taps == 4) {
        const auto few = run(KernelId::causal_conv_few_f32, {1, each.n_sequences() + 1});
        expect_bits(few[8], expected.data);
        EXPECT_EQ(few[7], results[7]);
      }
      rings = results[7];
      for (const std::int32_t slot : each.after) {
        const float* ring = cache.ring(0, slot);
        const auto begin =
            rings.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(slot) *
                                                        (ring_floats + gap) * sizeof(float));
        expect_bits({begin, begin + static_cast<std::ptrdiff_t>((ring_floats + gap) * 4)},
                    {ring, ring + ring_floats});
      }
    }
  }
}

}  // namespace
}  // namespace hearth::backend::gpu
