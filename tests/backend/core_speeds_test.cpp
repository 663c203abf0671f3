#include "backend/cpu/core_speeds.h"

#include <fstream>
#include <numeric>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/cpu/machine.h"
#include "backend/cpu/thread_pool.h"

namespace hearth::backend::cpu {
namespace {

using testing::AllOf;
using testing::DoubleNear;
using testing::Each;
using testing::ElementsAre;
using testing::SizeIs;

/// A folder like /sys/devices.
class CoreSpeeds : public testing::Test {
 protected:
  CoreSpeeds() { std::filesystem::create_directories(devices_); }
  ~CoreSpeeds() override { std::filesystem::remove_all(devices_); }

  void write(const std::string& name, const std::string& text) const {
    const auto path = devices_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << '\n';
  }
  void write_cpu(int cpu, const std::string& name, const std::string& text) const {
    write("system/cpu/cpu" + std::to_string(cpu) + "/" + name, text);
  }

  const std::filesystem::path devices_ =
      std::filesystem::path(testing::TempDir()) /
      (std::string("core_speeds_") + testing::UnitTest::GetInstance()->current_test_info()->name());
  std::vector<int> eight_ = {0, 1, 2, 3, 4, 5, 6, 7};
};

TEST_F(CoreSpeeds, AreEqualWhereNothingIsSaid) {
  EXPECT_THAT(read_core_speeds(devices_, eight_), ElementsAre(1, 1, 1, 1, 1, 1, 1, 1));
}

TEST_F(CoreSpeeds, AreTheKernelsCapacities) {
  for (const int cpu : eight_) {
    write_cpu(cpu, "cpu_capacity", cpu < 4 ? "256" : cpu < 7 ? "768" : "1024");
    write_cpu(cpu, "cpufreq/cpuinfo_max_freq", "2000000");
  }
  EXPECT_THAT(read_core_speeds(devices_, eight_),
              ElementsAre(1, 0.75, 0.75, 0.75, 0.25, 0.25, 0.25, 0.25));
}

TEST_F(CoreSpeeds, OfSmallCoresAreHalfOfTheirFrequency) {
  write("cpu_core/cpus", "0-3");
  write("cpu_atom/cpus", "4-5,6-7");
  for (const int cpu : eight_) {
    write_cpu(cpu, "cpufreq/cpuinfo_max_freq", cpu < 4 ? "5000000" : "4000000");
    write_cpu(cpu, "topology/thread_siblings_list",
              cpu < 2   ? "0-1"
              : cpu < 4 ? "2-3"
                        : std::to_string(cpu));
  }
  EXPECT_THAT(read_core_speeds(devices_, eight_),
              ElementsAre(1, 1, DoubleNear(0.4, 1e-9), DoubleNear(0.4, 1e-9), DoubleNear(0.4, 1e-9),
                          DoubleNear(0.4, 1e-9)));
}

TEST_F(CoreSpeeds, CountThreadsOfACoreOnceHoweverTheyAreNumbered) {
  for (const int cpu : eight_) {
    write_cpu(cpu, "topology/thread_siblings_list",
              std::to_string(cpu % 4) + "," + std::to_string(cpu % 4 + 4));
  }
  EXPECT_THAT(read_core_speeds(devices_, eight_), SizeIs(4));
  // The core's other thread is not for us.
  EXPECT_THAT(read_core_speeds(devices_, std::vector{5, 6}), SizeIs(2));
}

TEST_F(CoreSpeeds, TakeFilesThatMakeNoSenseForMissing) {
  for (const int cpu : eight_) {
    write_cpu(cpu, "cpu_capacity", cpu == 3 ? "unknown" : "512");
    write_cpu(cpu, "cpufreq/cpuinfo_max_freq", cpu == 3 ? "-1" : "1000");
    write_cpu(cpu, "topology/thread_siblings_list", "x-y,,");
  }
  EXPECT_THAT(read_core_speeds(devices_, eight_), AllOf(SizeIs(8), Each(1)));
}

TEST(ThreadChoice, IsOneThreadForEachCoreThatIsFastEnough) {
  const std::vector<double> speeds{1, 1, 0.5, 0.5, 0.2};
  EXPECT_EQ(choose_threads(speeds, 8, 0).n_threads, 4);
  EXPECT_EQ(choose_threads(speeds, 3, 0).n_threads, 3);  // the quota
  EXPECT_EQ(choose_threads(speeds, 8, 5).n_threads, 5);  // as asked
  EXPECT_EQ(choose_threads(speeds, 2, 16).n_threads, 16);
}

TEST(ThreadChoice, LeavesMoreToBeClaimedWhereCoresDiffer) {
  EXPECT_DOUBLE_EQ(choose_threads(std::vector<double>{1, 1, 1}, 3, 0).fixed_share, equal_share);
  EXPECT_DOUBLE_EQ(choose_threads(std::vector<double>{1, 1, 0.5, 0.5}, 4, 0).fixed_share,
                   equal_share * 0.5 / 0.75);
  // Threads for the fast cores alone.
  EXPECT_DOUBLE_EQ(choose_threads(std::vector<double>{1, 1, 0.5, 0.5}, 4, 2).fixed_share,
                   equal_share);
}

TEST(ThreadChoice, FitsThisMachine) {
  const auto speeds = core_speeds();
  ASSERT_FALSE(speeds.empty());
  EXPECT_LE(std::ssize(speeds), available_cores());
  EXPECT_DOUBLE_EQ(speeds.front(), 1);
}

}  // namespace
}  // namespace hearth::backend::cpu
