#include "backend/cpu/core_speeds.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>

#include "backend/cpu/thread_pool.h"

namespace hearth::backend::cpu {
namespace {

/// With less than this of the fastest core's speed, a core adds less than its barriers cost.
constexpr double min_speed = 0.25;
/// What a small core of Intel's hybrid processors does in a cycle, relative to a large one: its
/// vector units are half as wide.
constexpr double small_core_work = 0.5;

std::optional<double> read_number(const std::filesystem::path& path) {
  std::ifstream file(path);
  double number = 0;
  return file >> number && number > 0 ? std::optional(number) : std::nullopt;
}

/// Whether a list of CPUs such as "0-3,8" has `cpu`.
bool lists(const std::filesystem::path& path, int cpu) {
  std::ifstream file(path);
  for (std::string range; std::getline(file, range, ',');) {
    int first = 0;
    int last = 0;
    char dash = 0;
    std::istringstream text(range);
    if (!(text >> first)) {
      return false;
    }
    if (!(text >> dash >> last)) {
      last = first;
    }
    if (first <= cpu && cpu <= last) {
      return true;
    }
  }
  return false;
}

std::filesystem::path folder_of(const std::filesystem::path& devices, int cpu) {
  return devices / "system" / "cpu" / ("cpu" + std::to_string(cpu));
}

/// One CPU of each core.
std::vector<int> first_of_cores(const std::filesystem::path& devices, std::span<const int> cpus) {
  std::vector<int> firsts;
  for (const int cpu : cpus) {
    const auto siblings = folder_of(devices, cpu) / "topology" / "thread_siblings_list";
    if (std::none_of(firsts.begin(), firsts.end(),
                     [&](int other) { return lists(siblings, other); })) {
      firsts.push_back(cpu);
    }
  }
  return firsts;
}

/// The kernel's own estimate, which it has for Arm's processors and newer kernels for others too.
std::optional<double> capacity(const std::filesystem::path& devices, int cpu) {
  return read_number(folder_of(devices, cpu) / "cpu_capacity");
}

std::optional<double> work_per_second(const std::filesystem::path& devices, int cpu) {
  const auto frequency = read_number(folder_of(devices, cpu) / "cpufreq" / "cpuinfo_max_freq");
  const bool is_small = lists(devices / "cpu_atom" / "cpus", cpu);
  return frequency ? std::optional(*frequency * (is_small ? small_core_work : 1)) : std::nullopt;
}

}  // namespace

std::vector<double> read_core_speeds(const std::filesystem::path& devices,
                                     std::span<const int> cpus) {
  const auto cores = first_of_cores(devices, cpus);
  for (const auto& measure : {capacity, work_per_second}) {
    std::vector<double> speeds;
    for (const int cpu : cores) {
      if (const auto speed = measure(devices, cpu)) {
        speeds.push_back(*speed);
      }
    }
    if (!speeds.empty() && speeds.size() == cores.size()) {
      std::sort(speeds.begin(), speeds.end(), std::greater<>());
      const double fastest = speeds.front();
      for (double& speed : speeds) {
        speed /= fastest;
      }
      return speeds;
    }
  }
  return std::vector<double>(cores.size(), 1.0);
}

ThreadChoice choose_threads(std::span<const double> speeds, int n_available, int n_wanted) {
  const auto n_fast =
      std::count_if(speeds.begin(), speeds.end(), [](double speed) { return speed >= min_speed; });
  const int n_threads =
      n_wanted > 0 ? n_wanted : std::clamp(static_cast<int>(n_fast), 1, n_available);
  const auto used = speeds.first(std::min(speeds.size(), static_cast<std::size_t>(n_threads)));
  const double mean =
      std::accumulate(used.begin(), used.end(), 0.0) / static_cast<double>(used.size());
  // Threads are not tied to cores, so each has as much for itself as the slowest does in the time
  // that all would take together.
  return {n_threads, equal_share * used.back() / mean};
}

}  // namespace hearth::backend::cpu
