#include "backend/gpu/cuda/cuda_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/gpu/cuda/fatbin.h"
#include "backend/gpu/kernels/elementwise.h"
#include "tests/backend/gpu/cuda/fake_driver.h"

namespace hearth::backend::gpu::cuda {
namespace {

constexpr auto no_time = std::chrono::nanoseconds(0);
constexpr std::array<std::byte, 1> any_image{};

std::unique_ptr<Device> open() {
  return open_cuda_device(FakeDriver::api(), any_image, 0).value();
}

/// Why a card cannot be opened.
Error refusal(int ordinal = 0) {
  const auto device = open_cuda_device(FakeDriver::api(), any_image, ordinal);
  EXPECT_FALSE(device);
  return device.error();
}

TEST(CudaDevice, SaysWhatTheCardIs) {
  const FakeDriver driver;
  const Capabilities capabilities = open()->capabilities();
  EXPECT_EQ(capabilities.name, "Fake H200");
  EXPECT_EQ(capabilities.architecture, "sm_90");
  EXPECT_EQ(capabilities.memory_bytes, driver.memory_bytes);
  EXPECT_EQ(capabilities.compute_units, 132u);
  EXPECT_FALSE(capabilities.is_host_visible);
}

TEST(CudaDevice, SaysInOneSentenceWhyThereIsNone) {
  FakeDriver driver;
  EXPECT_EQ(refusal(1).message, "there is no card 1: the NVIDIA driver sees 1 (from 0)");
  driver.load_status = Status::no_binary_for_gpu;
  EXPECT_EQ(refusal().message,
            "this build has no kernels for the card: it needs compute capability 8.0 or newer");
  driver.load_status = Status::unsupported_ptx_version;
  EXPECT_EQ(refusal().message,
            "the NVIDIA driver is too old for this build: it knows CUDA up to 12.8");
  driver.load_status = Status::illegal_address;
  EXPECT_EQ(refusal(), (Error{ErrorCode::internal,
                              "cuda: loading the kernels failed: it said so (error 700)"}));
  for (const int n_devices : {0, -1}) {
    driver.n_devices = n_devices;
    EXPECT_EQ(refusal(),
              (Error{ErrorCode::unsupported, "the NVIDIA driver sees no card on this machine"}));
  }
}

// On a machine with a card and kernels this opens it; everywhere else it says what is missing.
TEST(CudaDevice, OpensOrSaysWhatIsMissingHere) {
  const auto device = open_cuda_device(0);
  if (device) {
    EXPECT_THAT((*device)->capabilities().architecture, testing::StartsWith("sm_"));
  } else {
    EXPECT_EQ(device.error().code, ErrorCode::unsupported);
    EXPECT_THAT(device.error().message,
                testing::AnyOf("this program was built without CUDA kernels",
                               "no NVIDIA driver on this machine: libcuda.so.1 cannot be loaded",
                               testing::HasSubstr("card"), testing::HasSubstr("too old")));
    EXPECT_EQ(kernel_fatbin().empty(),
              device.error().message == "this program was built without CUDA kernels");
  }
}

TEST(CudaDevice, LaunchesAListInItsOrder) {
  FakeDriver driver;
  const auto device = open();
  const auto a = device->allocate(64, "a").value();
  const auto b = device->allocate(64, "b").value();
  const auto counts = device->allocate(12, "counts").value();
  CommandList list;
  list.fill(whole(a), 0);
  list.fill(whole(counts), 0);
  list.barrier();
  list.dispatch(KernelId::add_f32, {whole(counts), {a, 0, 32}, {a, 32, 32}, {b, 0, 32}},
                AddParams{8, 0}, {1}, {32});
  list.dispatch(KernelId::gated_f32, {whole(counts), {a, 0, 32}, {a, 32, 32}, {b, 32, 32}},
                ActivationParams{8, 0, 0}, {1}, {32});
  const auto commands = device->prepare(list).value();
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(device->wait(device->submit(*commands).value(), no_time).value());
  }
  EXPECT_THAT(driver.launched,
              testing::ElementsAre("add_f32", "gated_f32", "add_f32", "gated_f32"));
}

TEST(CudaDevice, WaitsNoLongerThanItIsToldTo) {
  FakeDriver driver;
  const auto device = open();
  const auto a = device->allocate(64, "a").value();
  CommandList list;
  list.fill(whole(a), 0);
  const auto commands = device->prepare(list).value();
  const Ticket ticket = device->submit(*commands).value();
  driver.n_busy_queries = 3;
  EXPECT_FALSE(device->wait(ticket, no_time).value());
  EXPECT_TRUE(device->wait(ticket, std::chrono::minutes(1)).value());
  EXPECT_TRUE(device->wait(ticket, no_time).value());
}

TEST(CudaDevice, SaysWhatIsFreeWhenMemoryDoesNotFit) {
  FakeDriver driver;
  driver.memory_bytes = 1000;
  const auto device = open();
  const auto weights = device->allocate(600, "weights").value();
  const auto cache = device->allocate(500, "cache");
  ASSERT_FALSE(cache);
  EXPECT_EQ(cache.error(),
            (Error{ErrorCode::out_of_memory,
                   "cuda: no memory for buffer 'cache' of 500 bytes: 400 of 1000 bytes are free, "
                   "600 are ours"}));
  EXPECT_FALSE(device->is_lost());
}

TEST(CudaDevice, IsLostAfterAFaultOfAKernel) {
  FakeDriver driver;
  const auto device = open();
  const auto a = device->allocate(96, "a").value();
  CommandList list;
  list.dispatch(KernelId::add_f32, {{a, 0, 32}, {a, 32, 32}, {a, 32, 32}, {a, 64, 32}},
                AddParams{8, 0}, {1}, {32});
  const auto commands = device->prepare(list).value();
  driver.launch_status = Status::illegal_address;
  const auto submitted = device->submit(*commands);
  ASSERT_FALSE(submitted);
  EXPECT_EQ(submitted.error().message, "cuda: add_f32 failed: it said so (error 700)");
  EXPECT_TRUE(device->is_lost());
  driver.launch_status = Status::success;
  EXPECT_EQ(device->submit(*commands).error().message, "cuda: Fake H200 is lost, open it anew");
}

TEST(CudaDevice, MayEndBeforeItsBuffers) {
  const FakeDriver driver;
  auto device = open();
  auto buffer = device->allocate(64, "a").value();
  device.reset();
  buffer.reset();
}

}  // namespace
}  // namespace hearth::backend::gpu::cuda
