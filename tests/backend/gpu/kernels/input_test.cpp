#include "backend/gpu/kernels/input.h"

#include <algorithm>
#include <limits>
#include <optional>

#include <gtest/gtest.h>

#include "tests/backend/gpu/kernels/weight_types.h"
#include "tests/graph/tiny_model.h"

namespace hearth::backend::gpu {
namespace {

using graph::Matrix;
using graph::random_matrix;
using graph::run_op;

/// What happens to an input before it is quantized.
struct Preparation {
  std::int64_t norm_run = 0;                  // 0: no norm
  std::optional<graph::ActivationKind> gate;  // of columns of another value
};

constexpr u32 capacity = 4;
constexpr graph::ColumnPattern pattern{.period = 48, .start = 16, .width = 32};

/// An input with its reference, and the kernel's operands.
class GpuInput {
 public:
  GpuInput(Matrix x, const Preparation& preparation)
      : x_(std::move(x)), expected_(x_), params_(params_of(x_, preparation)) {
    if (preparation.norm_run != 0) {
      const auto norm = weights_.add_uniform("norm", {preparation.norm_run}, 0.5f, 1.5f);
      norm_ = values<float>(weights_.bytes(norm));
      expected_ = run_op(graph::RmsNorm{norm, params_.eps}, weights_.table(), {expected_}).value();
    }
    if (preparation.gate) {
      const std::int64_t n_patterns = x_.features / pattern.width;
      const Matrix gate = random_matrix(x_.rows, n_patterns * pattern.period, 7);
      gate_ = gate.data;
      const auto chosen = run_op(graph::Columns{pattern}, weights_.table(), {gate}).value();
      const auto factor =
          run_op(graph::Activation{*preparation.gate}, weights_.table(), {chosen}).value();
      expected_ = run_op(graph::Mul{}, weights_.table(), {expected_, factor}).value();
    }
  }

  void expect_codes(int block) {
    const Codes codes(expected_.data, block);
    params_.block = static_cast<u32>(block);
    const std::size_t n_values = capacity * params_.n;
    const std::size_t n_sums = n_values / quant::activation_sum_group;
    auto expected_codes = codes.codes;
    auto expected_sums = codes.sums;
    expected_codes.resize(n_values);  // rows that are not there keep their zeroes
    expected_sums.resize(n_sums);
    const auto expect = [&](const std::vector<Contents>& results) {
      EXPECT_EQ(values<std::int8_t>(results[4]), expected_codes);
      expect_bits(results[5], codes.scales);
      EXPECT_EQ(values<std::int16_t>(results[6]), expected_sums);
    };
    const std::vector<Contents> places{Contents(n_values), poisoned(n_values / params_.block),
                                       contents(std::vector<std::int16_t>(n_sums))};
    expect(run(KernelId::quantize_input, places));
    if (has_whole_rows()) {
      expect(run_rows(places, poisoned(1), {params_, 1, 0}));
      const auto with_floats = run_rows(places, poisoned(n_values), {params_, 1, 1});
      expect(with_floats);
      expect_bits(with_floats[7], expected_.data);
    }
  }

  void expect_floats() {
    const Contents place = poisoned(capacity * params_.n);
    expect_bits(run(KernelId::float_input, {place})[4], expected_.data);
    if (has_whole_rows()) {
      const std::vector<Contents> none(3, poisoned(1));
      expect_bits(run_rows(none, place, {params_, 0, 1})[7], expected_.data);
    }
  }

 private:
  static InputParams params_of(const Matrix& x, const Preparation& preparation) {
    return {.axis = 1,
            .n = static_cast<u32>(x.features),
            .block = 0,
            .norm_run = static_cast<u32>(preparation.norm_run),
            .eps = 1e-5f,
            .has_gate = preparation.gate ? 1u : 0u,
            .activation = preparation.gate ? static_cast<u32>(*preparation.gate) : 0u,
            .gate_stride = static_cast<u32>(x.features / pattern.width * pattern.period),
            .period = static_cast<u32>(pattern.period),
            .start = static_cast<u32>(pattern.start),
            .width = static_cast<u32>(pattern.width)};
  }
  /// Whether input_rows takes the input.
  [[nodiscard]] bool has_whole_rows() const { return params_.norm_run == params_.n; }

  [[nodiscard]] std::vector<Contents> buffers(const std::vector<Contents>& results) const {
    std::vector<Contents> buffers{counts(0, static_cast<u32>(x_.rows)), contents(x_.data),
                                  norm_.empty() ? no_buffer() : contents(norm_),
                                  gate_.empty() ? no_buffer() : contents(gate_)};
    buffers.insert(buffers.end(), results.begin(), results.end());
    return buffers;
  }
  [[nodiscard]] std::vector<Contents> run(KernelId kernel,
                                          const std::vector<Contents>& results) const {
    const Dim3 grid{(params_.n + INPUT_GROUP_VALUES - 1) / INPUT_GROUP_VALUES, capacity};
    return run_everywhere(call(kernel, buffers(results), params_, grid, {INPUT_THREADS}));
  }
  [[nodiscard]] std::vector<Contents> run_rows(std::vector<Contents> codes, const Contents& floats,
                                               const InputRowsParams& params) const {
    codes.push_back(floats);
    return run_everywhere(
        call(KernelId::input_rows, buffers(codes), params, {2}, {INPUT_ROWS_THREADS}));
  }

  graph::RandomWeights weights_{1};
  Matrix x_;
  Matrix expected_;
  InputParams params_;
  std::vector<float> norm_, gate_;
};

TEST(GpuQuantizeInput, GivesTheCodesOfTheReference) {
  for (const int block : {32, 256}) {
    for (const std::int64_t n : shapes<std::int64_t>({256, 2304})) {
      GpuInput(random_matrix(3, n, 2), {}).expect_codes(block);
    }
  }
  GpuInput(random_matrix(2, 96, 2), {}).expect_codes(32);
}

TEST(GpuQuantizeInput, GivesAFaultyBlockNanAndATinyOneZero) {
  Matrix x = random_matrix(2, 512, 2);
  x.data[7] = std::numeric_limits<float>::quiet_NaN();
  x.data[300] = -std::numeric_limits<float>::infinity();
  std::fill_n(x.data.begin() + 512, 32, 0x1p-121f);
  std::fill_n(x.data.begin() + 544, 32, 0x1p-120f);
  std::fill_n(x.data.begin() + 768, 256, -0.0f);
  for (const int block : {32, 256}) {
    GpuInput(x, {}).expect_codes(block);
  }
}

TEST(GpuQuantizeInput, NormsWholeRowsAndRuns) {
  for (const std::int64_t norm_run : shapes<std::int64_t>({4608, 96, 256, 2304})) {
    GpuInput(random_matrix(2, 4608, 2), {.norm_run = norm_run, .gate = {}}).expect_codes(256);
  }
  GpuInput(random_matrix(3, 1120, 2), {.norm_run = 1120, .gate = graph::ActivationKind::silu})
      .expect_codes(32);
}

TEST(GpuQuantizeInput, GatesByColumnsOfAnotherValue) {
  for (const auto kind : shapes({graph::ActivationKind::silu, graph::ActivationKind::gelu_tanh,
                                 graph::ActivationKind::sigmoid})) {
    GpuInput(random_matrix(3, 512, 2), {.norm_run = 128, .gate = kind}).expect_codes(32);
  }
}

TEST(GpuFloatInput, NormsAndGates) {
  using enum graph::ActivationKind;
  for (const std::int64_t norm_run : shapes<std::int64_t>({0, 64, 2496})) {
    GpuInput(random_matrix(3, 2496, 2), {.norm_run = norm_run, .gate = {}}).expect_floats();
    GpuInput(random_matrix(3, 2496, 2), {.norm_run = norm_run, .gate = silu}).expect_floats();
  }
}

}  // namespace
}  // namespace hearth::backend::gpu
