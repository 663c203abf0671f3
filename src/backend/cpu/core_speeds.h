#pragma once
/// How fast the cores of a machine are beside one another, and what follows for its threads.

#include <filesystem>
#include <span>
#include <vector>

namespace hearth::backend::cpu {

/// The speed of each core that one of `cpus` belongs to, fastest first, relative to the fastest.
/// CPUs that are threads of one core count once. `devices` is the folder that Linux calls
/// /sys/devices; what it does not say is taken for equal.
std::vector<double> read_core_speeds(const std::filesystem::path& devices,
                                     std::span<const int> cpus);

struct ThreadChoice {
  int n_threads;
  double fixed_share;  // as ThreadPool takes it
};

/// `n_wanted` threads or, for 0, one for each core that is not much slower than the fastest, and at
/// most `n_available`. `speeds` as read_core_speeds() gives them, at least one.
ThreadChoice choose_threads(std::span<const double> speeds, int n_available, int n_wanted);

}  // namespace hearth::backend::cpu
