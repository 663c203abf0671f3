#include "tests/backend/gpu/kernels/kernel_runner.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include <gtest/gtest.h>

#include "backend/gpu/cuda/cuda_device.h"
#include "backend/gpu/emulator/emulator_device.h"

namespace hearth::backend::gpu {
namespace {

struct NamedDevice {
  std::string name;
  std::unique_ptr<Device> device;
};

std::vector<NamedDevice> open_devices() {
  std::vector<NamedDevice> devices;
  struct Order {
    int n_workers;
    std::uint64_t seed;
  };
  std::vector<Order> orders{{1, 0}, {2, 3}};
  if (emulator::has_thread_sanitizer) {
    orders = {{1, 1}};  // every lane is a thread there, and races are found whatever the order
  } else if (HEARTH_ADDRESS_SANITIZER == 0) {
    orders.insert(orders.end(), {{1, 1}, {2, 2}});
  }
  for (const auto& [n_workers, seed] : orders) {
    const emulator::EmulatorDeviceOptions options{.n_workers = n_workers, .seed = seed};
    devices.push_back({"emulator, seed " + std::to_string(options.seed),
                       emulator::open_emulator_device(options)});
  }
  return devices;
}

/// A card, if the environment asks for its kind; the emulator in several orders otherwise. Opened
/// once, because the emulator's stacks take time.
const std::vector<NamedDevice>& devices() {
  static const std::vector<NamedDevice> all = [] {
    const char* kind = std::getenv("HEARTH_TEST_GPU");
    if (kind == nullptr) {
      return open_devices();
    }
    EXPECT_STREQ(kind, "cuda");
    std::vector<NamedDevice> one;
    one.push_back({kind, cuda::open_cuda_device(0).value()});
    return one;
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
  for (const auto& [name, device] : devices()) {
    auto results = run_on(*device, call);
    if (first.empty()) {
      first = std::move(results);
    } else {
      EXPECT_TRUE(results == first) << kernel_info(call.kernel).name << ": other bits on " << name;
    }
  }
  return first;
}

void expect_bits(const Contents& result, const std::vector<float>& expected) {
  const auto given = values<std::uint32_t>(result);
  ASSERT_GE(given.size(), expected.size());
  for (std::size_t i = 0; i < given.size(); ++i) {
    const bool is_masked = i >= expected.size();
    const auto value = std::bit_cast<float>(given[i]);
    if (!is_masked && std::isnan(expected[i]) && std::isnan(value)) {
      continue;
    }
    const std::uint32_t bits = is_masked ? 0xffffffffu : std::bit_cast<std::uint32_t>(expected[i]);
    ASSERT_EQ(given[i], bits) << "float " << i << " is " << value << ", expected "
                              << std::bit_cast<float>(bits);
  }
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
