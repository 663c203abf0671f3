#include "tests/backend/gpu/kernels/kernel_runner.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "backend/gpu/emulator/emulator_device.h"

namespace hearth::backend::gpu {
namespace {

struct Order {
  std::uint64_t seed;
  int n_workers;
  std::unique_ptr<Device> device;
};

/// Opened once: their stacks are what takes time.
const std::vector<Order>& orders() {
  static const std::vector<Order> all = [] {
    // The thread sanitizer makes every lane a thread, and finds races whatever the order.
    std::vector<Order> made;
    const int n = emulator::has_thread_sanitizer ? 1 : 4;
    for (int i = 0; i < n; ++i) {
      const auto seed = static_cast<std::uint64_t>(emulator::has_thread_sanitizer ? 1 : i);
      const int n_workers = 1 + i / 2;
      made.push_back({seed, n_workers,
                      emulator::open_emulator_device({.n_workers = n_workers, .seed = seed})});
    }
    return made;
  }();
  return all;
}

std::vector<Contents> run_on(Device& device, const KernelCall& call) {
  DispatchCommand command{call.kernel, {}, call.params, call.grid, call.group_size};
  for (const Contents& bytes : call.buffers) {
    auto part = whole(device.allocate(bytes.size(), "test").value());
    EXPECT_TRUE(device.upload(part, bytes));
    command.buffers.push_back(std::move(part));
  }
  CommandList list;
  list.add(command);
  const auto commands = device.prepare(list);
  EXPECT_TRUE(commands) << commands.error().message;
  const auto done = device.wait(device.submit(**commands).value(), std::chrono::minutes(1));
  EXPECT_TRUE(done) << done.error().message;
  std::vector<Contents> results;
  for (const BufferPart& part : command.buffers) {
    results.emplace_back(part.bytes);
    EXPECT_TRUE(device.download(results.back(), part));
  }
  return results;
}

}  // namespace

std::vector<Contents> run_everywhere(const KernelCall& call) {
  std::vector<Contents> first;
  for (const Order& order : orders()) {
    auto results = run_on(*order.device, call);
    if (first.empty()) {
      first = std::move(results);
    } else {
      EXPECT_TRUE(results == first) << kernel_info(call.kernel).name << ": other bits with seed "
                                    << order.seed << ", " << order.n_workers << " workers";
    }
  }
  return first;
}

double relative_error(const std::vector<float>& a, const std::vector<double>& b) {
  double difference = a.size() == b.size() ? 0 : std::numeric_limits<double>::infinity();
  double norm = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double d = static_cast<double>(a[i]) - b[i];
    difference += d * d;
    norm += b[i] * b[i];
  }
  const double error = std::sqrt(difference / norm);
  return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
}

double relative_error(const std::vector<float>& a, const std::vector<float>& b) {
  return relative_error(a, std::vector<double>(b.begin(), b.end()));
}

double f32_tolerance(std::int64_t n) {
  return 1e-7 * std::sqrt(static_cast<double>(n)) + 2e-7;
}

}  // namespace hearth::backend::gpu
