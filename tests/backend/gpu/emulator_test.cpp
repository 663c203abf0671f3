#include "backend/gpu/emulator/emulator.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/half.h"
#include "tests/backend/gpu/fault_kernels.h"

namespace hearth::backend::gpu {
namespace {

using emulator::EmulatedKernel;
using emulator::Emulator;
using emulator::MemoryRange;
using testing::AllOf;
using testing::HasSubstr;

template <class T>
MemoryRange range(std::vector<T>& values, std::string_view name) {
  return {reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof(T), name};
}

Result<void> run(Emulator& emulator, const EmulatedKernel& kernel, std::vector<MemoryRange> buffers,
                 TestParams params, Dim3 grid, Dim3 group_size) {
  return emulator.run(kernel, buffers, std::as_bytes(std::span(&params, 1)), grid, group_size);
}

/// For comparisons that tell NaN from NaN.
std::vector<std::uint32_t> bits(const std::vector<float>& values) {
  std::vector<std::uint32_t> result(values.size());
  std::memcpy(result.data(), values.data(), values.size() * sizeof(float));
  return result;
}

std::vector<float> wavy(std::size_t n) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = std::sin(static_cast<float>(i)) * 3.0f;
  }
  return values;
}

TEST(Emulator, DescribesAKernelByItsText) {
  const KernelInfo& info = group_sum_emulated.info;
  EXPECT_EQ(info.name, "group_sum");
  EXPECT_EQ(info.max_threads, 256u);
  EXPECT_EQ(info.param_bytes, sizeof(TestParams));
  ASSERT_EQ(info.n_buffers, 2u);
  EXPECT_EQ(info.buffers()[0].name, "x");
  EXPECT_FALSE(info.buffers()[0].written);
  EXPECT_EQ(info.buffers()[1].name, "y");
  EXPECT_TRUE(info.buffers()[1].written);
}

TEST(Emulator, GivesTheSameBitsInEveryOrderAndOnEveryNumberOfThreads) {
  constexpr std::size_t n = 1000;
  constexpr std::size_t n_groups = 5;
  auto x = wavy(n * n_groups);
  std::vector<float> expected(n_groups);
  // The thread sanitizer takes a tenth of a millisecond for every thread of the kernel.
  const std::uint64_t n_seeds = emulator::has_thread_sanitizer ? 1 : 4;
  for (std::uint64_t seed = 0; seed < n_seeds; ++seed) {
    for (const int n_workers : {1, 3}) {
      Emulator emulator({.n_workers = n_workers, .seed = seed});
      std::vector<float> y(n_groups, NAN);
      ASSERT_TRUE(run(emulator, group_sum_emulated, {range(x, "x"), range(y, "y")}, {n}, {n_groups},
                      {256}));
      if (seed == 0 && n_workers == 1) {
        expected = y;
      }
      EXPECT_EQ(bits(y), bits(expected)) << "seed " << seed << ", workers " << n_workers;
    }
  }
  for (std::size_t group = 0; group < n_groups; ++group) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      sum += static_cast<double>(x[group * n + i]);
    }
    EXPECT_NEAR(static_cast<double>(expected[group]), sum, 1e-3);
  }
}

TEST(Emulator, TellsEveryThreadWhereItIs) {
  Emulator emulator({.seed = 3});
  std::vector<std::uint32_t> y(768);
  ASSERT_TRUE(run(emulator, positions_emulated, {range(y, "y")}, {0}, {2, 3, 2}, {8, 4, 2}));
  for (std::uint32_t i = 0; i < y.size(); ++i) {
    EXPECT_EQ(y[i], 10000 * (i / 64) + 100 * (i % 64 / 32) + i % 32) << i;
  }
}

TEST(Emulator, ComputesCollectives) {
  Emulator emulator({.seed = 1});
  auto x = wavy(32);
  std::vector<float> y(192);
  ASSERT_TRUE(run(emulator, collectives_emulated, {range(x, "x"), range(y, "y")}, {0}, {}, {32}));
  double sum = 0;
  for (const float value : x) {
    sum += static_cast<double>(value);
  }
  const float maximum = *std::max_element(x.begin(), x.end());
  for (std::size_t lane = 0; lane < 32; ++lane) {
    EXPECT_NEAR(static_cast<double>(y[lane]), sum, 1e-5);
    EXPECT_EQ(y[lane], y[0]);
    EXPECT_EQ(y[32 + lane], maximum);
    EXPECT_EQ(y[64 + lane], 496.0f);
    EXPECT_EQ(y[96 + lane], x[31 - lane]);
    EXPECT_EQ(y[128 + lane], x[lane ^ 5]);
    EXPECT_EQ(y[160 + lane], 7.0f);
  }
}

TEST(Emulator, MultipliesTiles) {
  Emulator emulator({.seed = 2});
  auto a = wavy(256);
  auto b = wavy(512);
  b.erase(b.begin(), b.begin() + 256);
  std::vector<float> y(256);
  ASSERT_TRUE(run(emulator, tile_product_emulated, {range(a, "a"), range(b, "b"), range(y, "y")},
                  {2}, {}, {32}));
  const auto rounded = [](float x) { return static_cast<double>(to_float(to_half(x))); };
  for (std::size_t i = 0; i < 16; ++i) {
    for (std::size_t j = 0; j < 16; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < 16; ++k) {
        sum += 2.0 * rounded(a[16 * i + k]) * rounded(b[16 * k + j]);
      }
      EXPECT_NEAR(static_cast<double>(y[16 * i + j]), sum, 1e-4) << i << ", " << j;
    }
  }
}

/// The line with "// the fault" in the text of a kernel; 0 without.
std::size_t line_of_fault(std::string_view kernel) {
  std::ifstream file(HEARTH_TESTS_DIR "/backend/gpu/fault_kernels.cpp");
  std::size_t number = 0;
  bool is_inside = false;
  for (std::string line; std::getline(file, line);) {
    ++number;
    is_inside = line.starts_with("KERNEL(") ? line.find(kernel) != std::string::npos : is_inside;
    if (is_inside && line.ends_with("// the fault")) {
      return number;
    }
  }
  return 0;
}

/// A kernel with a planted fault, and what its report has to say besides its line.
struct Planted {
  const char* name;
  const EmulatedKernel& kernel;
  const char* says;
  std::uint32_t n_threads = 32;
};

class PlantedFault : public testing::TestWithParam<Planted> {};

TEST_P(PlantedFault, IsReportedWithItsPlace) {
  const Planted& planted = GetParam();
  const std::size_t line = line_of_fault(planted.kernel.info.name);
  // Both threadgroups write to the same places, which the thread sanitizer would report.
  const std::uint32_t n_groups = emulator::has_thread_sanitizer ? 1 : 2;
  for (const int n_workers : {1, 2}) {
    Emulator emulator({.n_workers = n_workers});
    std::vector<float> x(64, 1.0f);
    std::vector<float> y(64);
    std::vector<MemoryRange> buffers{range(x, "x"), range(y, "y")};
    if (planted.kernel.info.n_buffers == 1) {
      buffers.erase(buffers.begin());
    }
    const auto result =
        run(emulator, planted.kernel, buffers, {40}, {n_groups}, {planted.n_threads});
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::internal);
    EXPECT_THAT(
        result.error().message,
        AllOf(HasSubstr("kernel '" + std::string(planted.kernel.info.name) + "': "),
              HasSubstr(planted.says), HasSubstr("(threadgroup ("),
              HasSubstr(line == 0 ? "" : "fault_kernels.cpp:" + std::to_string(line) + ")")));
    // The emulator goes on after a fault.
    EXPECT_TRUE(run(emulator, group_sum_emulated, {range(x, "x"), range(y, "y")}, {32}, {2}, {64}));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Emulator, PlantedFault,
    testing::Values(
        Planted{"ReadsOutside", fault_reads_outside_emulated,
                "accesses 4 bytes at byte 256 of 'x', which has 256 bytes"},
        Planted{"ReadsBefore", fault_reads_before_emulated, "accesses 4 bytes at byte -4 of 'x'"},
        Planted{"SharedOutside", fault_shared_outside_emulated,
                "accesses 4 bytes at byte 64 of 'part', which has 64 bytes"},
        Planted{"Misaligned", fault_misaligned_emulated,
                "accesses 16 bytes at byte 4 of 'x', which is not aligned"},
        Planted{"SharedTooLarge", fault_shared_too_large_emulated,
                "array 'other' of 16388 bytes does not fit: 16384 of 32768 bytes"},
        Planted{"SharedArrayOfSome", fault_shared_array_of_some_emulated,
                "array 'second' is not reached by every thread: another one has 'first'"},
        Planted{"BarrierOfSomeLanes", fault_barrier_of_some_lanes_emulated,
                "lane 16 of simdgroup 0 has come to a simdgroup operation", 64},
        Planted{"BarrierOfSomeSimdgroups", fault_barrier_of_some_simdgroups_emulated,
                "simdgroup 1 has come to the end of the kernel, while simdgroup 0 is at a "
                "threadgroup barrier (fault_kernels.cpp:",
                64},
        Planted{"TwoBarriers", fault_two_barriers_emulated,
                "simdgroup 1 has come to a threadgroup barrier", 64},
        Planted{"EarlyReturn", fault_early_return_emulated,
                "has come to a simdgroup operation (fault_kernels.cpp:"},
        Planted{"TwoCollectives", fault_two_collectives_emulated,
                "has come to a simdgroup operation (fault_kernels.cpp:"},
        Planted{"LaneBeyond31", fault_lane_beyond_31_emulated,
                "takes the value of lane 32, expected at most 31"},
        Planted{"TileStride", fault_tile_stride_emulated,
                "accesses a tile with rows 20 elements apart"},
        Planted{"DoesNotWait", fault_does_not_wait_emulated,
                "ends without having called wait_for_kernel_before()"}),
    [](const auto& param_info) { return std::string(param_info.param.name); });

TEST(Emulator, ShowsAnEarlyKernelWhatThereWasBeforeUntilItWaits) {
  Emulator emulator({});
  std::vector<float> x(32, 2.0f);
  std::vector<float> x_before(32, 1.0f);
  std::vector<float> y(64);
  MemoryRange seen = range(x, "x");
  seen.before = range(x_before, "x").begin;
  ASSERT_TRUE(run(emulator, early_emulated, {seen, range(y, "y")}, {0}, {1}, {32}));
  for (std::size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(y[i], i < 32 ? 32.0f : 64.0f) << i;
  }
}

TEST(Emulator, ShowsSharedMemoryThatNobodyWroteAsNan) {
  Emulator emulator({});
  std::vector<float> y(64);  // the second threadgroup must not find what the first has left
  ASSERT_TRUE(run(emulator, fault_unwritten_shared_emulated, {range(y, "y")}, {0}, {2}, {32}));
  for (std::size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(std::isnan(y[i]), i % 32 == 5) << i;
  }
}

TEST(Emulator, ShowsAMissingBarrierAsADifferenceBetweenOrders) {
  if (emulator::has_thread_sanitizer) {
    GTEST_SKIP() << "the thread sanitizer would rightly report it";
  }
  const auto result_of = [](const EmulatedKernel& kernel, std::uint64_t seed) {
    Emulator emulator({.seed = seed});
    auto x = wavy(64);
    std::vector<float> y(64, 0.0f);
    EXPECT_TRUE(
        run(emulator, kernel, {range(x, "x"), range(y, "y")}, {3}, {2}, {kernel.info.max_threads}));
    return y;
  };
  // Compared as bits: some orders leave NaN.
  const auto differ = [&](const EmulatedKernel& kernel) {
    const auto natural = result_of(kernel, 0);
    int n_different = 0;
    for (std::uint64_t seed = 1; seed < 4; ++seed) {
      n_different += bits(result_of(kernel, seed)) != bits(natural) ? 1 : 0;
    }
    return n_different > 0;
  };
  EXPECT_TRUE(differ(race_missing_barrier_emulated));
  EXPECT_TRUE(differ(race_write_after_read_emulated));
  EXPECT_TRUE(differ(race_between_groups_emulated));
}

TEST(Emulator, RefusesArgumentsThatAKernelCannotTake) {
  Emulator emulator({});
  std::vector<float> x(64);
  std::vector<float> y(64);
  const auto error = [&](std::vector<MemoryRange> buffers, Dim3 grid, Dim3 group_size) {
    const auto result =
        run(emulator, group_sum_emulated, std::move(buffers), {32}, grid, group_size);
    EXPECT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::invalid_argument);
    return result.error().message;
  };
  const std::vector<MemoryRange> good{range(x, "x"), range(y, "y")};
  EXPECT_EQ(error({range(x, "x")}, {}, {32}), "kernel 'group_sum': has 2 buffers, 1 were given");
  EXPECT_EQ(error({range(x, "x"), range(x, "x")}, {}, {32}),
            "kernel 'group_sum': buffers 'x' and 'y' overlap, and 'y' is written");
  EXPECT_THAT(error(good, {}, {48}), HasSubstr("a threadgroup of 48 threads"));
  EXPECT_THAT(error(good, {}, {512}), HasSubstr("a threadgroup of 512 threads"));
  EXPECT_THAT(error(good, {}, {1u << 31, 1u << 31, 129}), HasSubstr("a threadgroup of"));
  EXPECT_THAT(error(good, {}, {0}), HasSubstr("a threadgroup of 0 threads"));
  EXPECT_THAT(error(good, {0}, {32}), HasSubstr("a grid of 0 x 1 x 1 threadgroups"));
  EXPECT_THAT(error(good, {1, 65536}, {32}), HasSubstr("a grid of 1 x 65536 x 1 threadgroups"));
  const auto result = emulator.run(group_sum_emulated, good, {}, {}, {32});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "kernel 'group_sum': has 4 bytes of parameters, 0 were given");
}

// A kernel that writes through a pointer to const, or mixes address spaces, does not compile.
static_assert(
    std::is_convertible_v<emulator::DevicePointer<float>, emulator::DevicePointer<const float>>);
static_assert(
    !std::is_convertible_v<emulator::DevicePointer<const float>, emulator::DevicePointer<float>>);
static_assert(
    !std::is_constructible_v<emulator::DevicePointer<float>, emulator::DevicePointer<const float>>);
static_assert(
    !std::is_convertible_v<emulator::SharedPointer<float>, emulator::DevicePointer<float>>);
static_assert(!std::is_assignable_v<
              decltype(std::declval<emulator::DevicePointer<const float>>()[0]), float>);

}  // namespace
}  // namespace hearth::backend::gpu
