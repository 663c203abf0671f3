#include "backend/gpu/kernels/rope.h"

#include <gtest/gtest.h>

#include "tests/backend/gpu/kernels/kernel_runner.h"
#include "tests/backend/gpu/kernels/rope_angles.h"
#include "tests/graph/op_runner.h"

namespace hearth::backend::gpu {
namespace {

TEST(GpuRope, GivesTheBitsOfTheReferenceForBothPairings) {
  for (const auto pairing :
       shapes({graph::RopePairing::adjacent, graph::RopePairing::half_split})) {
    const graph::RopeParams params{.pairing = pairing, .head_dim = 24, .n_rot = 16};
    const graph::Matrix x = graph::random_matrix(5, 72, 1);
    const graph::OwnedStep step(5, 90);
    const auto expected = graph::run_op(graph::Rope{params}, {}, {x}, step).value();
    const auto results = run_everywhere(
        call(KernelId::rope_f32,
             {counts(5), contents(x.data), contents(rope_angles(params, step.positions)),
              poisoned(std::size_t{7} * 3 * 24)},
             RopeParams{rope_pairs(params), 24}, {3, 7}, {32}));
    expect_bits(results.back(), expected.data);
  }
}

}  // namespace
}  // namespace hearth::backend::gpu
