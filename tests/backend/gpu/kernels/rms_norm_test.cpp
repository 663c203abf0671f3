#include "backend/gpu/kernels/rms_norm.h"

#include <gtest/gtest.h>

#include "tests/backend/gpu/kernels/kernel_runner.h"
#include "tests/graph/op_runner.h"
#include "tests/graph/tiny_model.h"

namespace hearth::backend::gpu {
namespace {

using graph::Matrix;
using graph::random_matrix;

struct Case {
  std::int64_t n;
  std::int64_t runs;  // per row
  std::uint32_t n_threads;
};

TEST(GpuRmsNorm, GivesTheBitsOfTheReferenceForWholeRowsAndPerHead) {
  for (const Case& each : shapes<Case>({{4, 1, 32},
                                        {1024, 1, 256},
                                        {RMS_NORM_CHUNK + 37, 1, 256},
                                        {128, 3, 128},
                                        {53, 2, 64}})) {
    graph::RandomWeights weights(1);
    const auto weight = weights.add_uniform("norm", {each.n}, 0.5f, 1.5f);
    const Matrix x = random_matrix(2, each.runs * each.n, 2);
    const Matrix residual = random_matrix(2, each.runs * each.n, 3);
    const auto normed = graph::run_op(graph::RmsNorm{weight, 1e-5f}, weights.table(), {x}).value();
    const auto added = graph::run_op(graph::Add{}, {}, {residual, normed}).value();
    for (const bool adds : {false, true}) {
      const auto results = run_everywhere(
          call(KernelId::rms_norm_f32,
               {counts(9, 2), contents(x.data), weights.bytes(weight),
                adds ? contents(residual.data) : no_buffer(), poisoned(x.data.size() / 2 * 3)},
               RmsNormParams{static_cast<u32>(each.n), 1, adds ? 1u : 0u, 1e-5f},
               {static_cast<u32>(each.runs), 3}, {each.n_threads}));
      expect_bits(results.back(), adds ? added.data : normed.data);
    }
  }
}

}  // namespace
}  // namespace hearth::backend::gpu
