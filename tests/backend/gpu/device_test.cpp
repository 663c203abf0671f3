#include "backend/gpu/host/device.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/gpu/cuda/cuda_device.h"
#include "backend/gpu/emulator/emulator_device.h"
#include "backend/gpu/kernels/causal_conv.h"
#include "backend/gpu/kernels/elementwise.h"
#include "backend/gpu/metal/metal_device.h"
#include "backend/gpu/metal/metal_source.h"
#include "tests/backend/gpu/cuda/fake_driver.h"
#include "tests/backend/gpu/metal/fake_metal.h"

namespace hearth::backend::gpu {
namespace {

using emulator::open_emulator_device;
using testing::AllOf;
using testing::HasSubstr;

constexpr auto no_time = std::chrono::nanoseconds(0);

template <class T>
std::shared_ptr<Buffer> upload(Device& device, const std::vector<T>& values,
                               std::string_view label) {
  const auto bytes = std::as_bytes(std::span(values));
  auto buffer = device.allocate(bytes.size(), label).value();
  EXPECT_TRUE(device.upload(whole(buffer), bytes));
  return buffer;
}

std::vector<float> download(Device& device, const std::shared_ptr<Buffer>& buffer) {
  std::vector<float> values(buffer->size_bytes() / sizeof(float));
  EXPECT_TRUE(device.download(std::as_writable_bytes(std::span(values)), whole(buffer)));
  return values;
}

/// The message of the fault that prepare() finds in a list.
std::string fault_of(Device& device, const CommandList& list) {
  const auto prepared = device.prepare(list);
  EXPECT_FALSE(prepared);
  EXPECT_EQ(prepared.error().code, ErrorCode::invalid_argument);
  return prepared.error().message;
}

/// A device under test, and what it needs to live.
struct DeviceUnderTest {
  std::shared_ptr<void> driver;
  std::unique_ptr<Device> device;
};

DeviceUnderTest emulator_device() {
  return {nullptr, open_emulator_device({.seed = 1})};
}
DeviceUnderTest late_emulator_device() {
  return {nullptr, open_emulator_device({.seed = 1, .is_late = true})};
}
DeviceUnderTest cuda_device() {
  static constexpr std::array<std::byte, 1> image{};
  auto driver = std::make_shared<cuda::FakeDriver>();
  return {driver, cuda::open_cuda_device(cuda::FakeDriver::api(), image, 0).value()};
}
DeviceUnderTest metal_device() {
  auto fake = std::make_shared<metal::FakeMetal>();
  return {fake,
          metal::open_metal_device(metal::FakeMetal::runtime(), metal::library_source()).value()};
}

/// What every device has to do.
class GpuDevice : public testing::TestWithParam<DeviceUnderTest (*)()> {
 protected:
  void add(CommandList& list, const BufferPart& a, const BufferPart& b, const BufferPart& y) {
    list.dispatch(KernelId::add_f32, {whole(counts_), a, b, y},
                  AddParams{static_cast<u32>(y.bytes / 4), 0}, {1}, {32});
  }

  DeviceUnderTest under_test_ = GetParam()();
  Device* device_ = under_test_.device.get();
  std::shared_ptr<Buffer> counts_ = upload(*device_, std::vector<u32>{1}, "counts");
  std::shared_ptr<Buffer> a_ = upload(*device_, std::vector<float>(64, 1.0f), "a");
  std::shared_ptr<Buffer> b_ = upload(*device_, std::vector<float>(64, 2.0f), "b");
  std::shared_ptr<Buffer> y_ = upload(*device_, std::vector<float>(64, 0.0f), "y");
  std::shared_ptr<Buffer> z_ = upload(*device_, std::vector<float>(64, 0.0f), "z");
};

constexpr const char* names[]{"Emulator", "LateEmulator", "Cuda", "Metal"};
INSTANTIATE_TEST_SUITE_P(Drivers, GpuDevice,
                         testing::Values(emulator_device, late_emulator_device, cuda_device,
                                         metal_device),
                         [](const auto& param_info) { return names[param_info.index]; });

TEST_P(GpuDevice, RunsAListAsOftenAsItIsSubmitted) {
  CommandList list;
  add(list, whole(a_), whole(b_), whole(y_));
  list.barrier();
  list.copy(whole(a_), whole(y_));  // so that the next round adds to it
  const auto commands = device_->prepare(list).value();
  EXPECT_EQ(commands->counts(), (CommandCounts{.dispatches = 1, .barriers = 1}));
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(device_->wait(device_->submit(*commands).value(), no_time).value());
  }
  EXPECT_EQ(download(*device_, a_), std::vector<float>(64, 7.0f));
  const Counters counters = device_->counters();
  EXPECT_EQ(counters.submissions, 3);
  EXPECT_EQ(counters.dispatches, 3);
  EXPECT_EQ(counters.barriers, 3);
  EXPECT_EQ(counters.allocated_bytes, 4 + 4 * 256u);
  EXPECT_EQ(counters.uploaded_bytes, 4 + 4 * 256u);
  EXPECT_EQ(counters.downloaded_bytes, 256u);
}

TEST_P(GpuDevice, FillsPartsOfBuffers) {
  CommandList list;
  list.fill({a_, 64, 128}, 0);
  const auto commands = device_->prepare(list).value();
  ASSERT_TRUE(device_->submit(*commands));
  const auto values = download(*device_, a_);
  for (std::size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(values[i], i >= 16 && i < 48 ? 0.0f : 1.0f) << i;
  }
}

// The host's memory is read when the work runs, not when it is prepared.
TEST_P(GpuDevice, CopiesWhatTheHostHasWrittenSinceTheListWasPrepared) {
  const auto from = device_->allocate_host(256, "from").value();
  const auto to = device_->allocate_host(256, "to").value();
  CommandList list;
  list.copy(whole(y_), whole(from));
  list.barrier();
  list.copy(whole(to), whole(y_));
  const auto commands = device_->prepare(list).value();
  for (const std::byte value : {std::byte{1}, std::byte{2}}) {
    std::ranges::fill(from->host(), value);
    EXPECT_TRUE(device_->wait(device_->submit(*commands).value(), no_time).value());
    EXPECT_THAT(to->host(), testing::Each(value));
  }
}

TEST_P(GpuDevice, CopiesAtOnceWithoutAList) {
  EXPECT_TRUE(device_->copy({z_, 0, 128}, {a_, 0, 128}));
  EXPECT_TRUE(device_->copy({z_, 128, 128}, {b_, 0, 128}));
  const auto values = download(*device_, z_);
  EXPECT_EQ(values.front(), 1.0f);
  EXPECT_EQ(values.back(), 2.0f);
  EXPECT_EQ(device_->copy({z_, 0, 128}, {z_, 64, 128}).error().message,
            "copy: source and target overlap in 'z'");
}

TEST_P(GpuDevice, FindsEveryKindOfMissingBarrier) {
  CommandList read_after_write;
  add(read_after_write, whole(a_), whole(b_), whole(y_));
  add(read_after_write, whole(y_), whole(b_), whole(z_));
  EXPECT_EQ(fault_of(*device_, read_after_write),
            "missing barrier: 'add_f32' reads memory of 'y' that 'add_f32' writes");

  CommandList write_after_read;
  add(write_after_read, whole(a_), whole(b_), whole(y_));
  write_after_read.fill(whole(a_), 0);
  EXPECT_EQ(fault_of(*device_, write_after_read),
            "missing barrier: 'fill' writes memory of 'a' that 'add_f32' reads");

  CommandList write_after_write;
  write_after_write.copy(whole(y_), whole(a_));
  write_after_write.fill({y_, 252, 4}, 0);
  EXPECT_EQ(fault_of(*device_, write_after_write),
            "missing barrier: 'fill' writes memory of 'y' that 'copy' writes");

  CommandList apart;  // halves of a buffer do not meet
  add(apart, {a_, 0, 128}, {b_, 0, 128}, {y_, 0, 128});
  add(apart, {a_, 0, 128}, {b_, 0, 128}, {y_, 128, 128});
  EXPECT_TRUE(device_->prepare(apart));
}

TEST_P(GpuDevice, CountsBarriersThatSeparateNothing) {
  CommandList list;
  add(list, whole(a_), whole(b_), whole(y_));
  list.barrier();
  add(list, whole(a_), whole(b_), whole(z_));  // does not need the one before
  list.barrier();
  add(list, whole(z_), whole(b_), whole(y_));
  EXPECT_EQ(device_->prepare(list).value()->counts(),
            (CommandCounts{.dispatches = 3, .barriers = 2, .idle_barriers = 1}));
}

TEST_P(GpuDevice, RefusesListsThatBreakTheRules) {
  CommandList outside;
  outside.fill({a_, 200, 57}, 0);
  EXPECT_EQ(fault_of(*device_, outside), "fill: 57 bytes at byte 200 of buffer 'a', which has 256");

  CommandList far_outside;
  far_outside.fill({a_, ~std::uint64_t{0}, 2}, 0);
  EXPECT_THAT(fault_of(*device_, far_outside), HasSubstr("which has 256"));

  CommandList uneven;
  uneven.copy({a_, 0, 8}, {b_, 0, 4});
  EXPECT_EQ(fault_of(*device_, uneven), "copy: 8 bytes to 'a', 4 bytes from 'b'");

  CommandList in_place;
  add(in_place, whole(a_), whole(b_), whole(a_));
  EXPECT_EQ(fault_of(*device_, in_place),
            "kernel 'add_f32': buffers 'a' and 'y' overlap, and 'y' is written");

  CommandList too_many_threads;
  too_many_threads.dispatch(KernelId::add_f32, {whole(counts_), whole(a_), whole(b_), whole(y_)},
                            AddParams{64, 0}, {1}, {1024});
  EXPECT_THAT(fault_of(*device_, too_many_threads), HasSubstr("a threadgroup of 1024 threads"));

  const std::vector<float> three(3);
  const auto uploaded = device_->upload(whole(a_), std::as_bytes(std::span(three)));
  ASSERT_FALSE(uploaded);
  EXPECT_EQ(uploaded.error().message, "upload: 12 bytes of the host and 256 of buffer 'a'");
}

TEST(EmulatorDevice, TellsOfAFaultOfAKernelWhenItIsWaitedFor) {
  const auto device = open_emulator_device({});
  const auto counts = upload(*device, std::vector<u32>{1}, "counts");
  const auto a = device->allocate(256, "a").value();
  const auto y = device->allocate(256, "y").value();
  CommandList list;
  list.dispatch(KernelId::add_f32, {whole(counts), whole(a), whole(a), whole(y)}, AddParams{68, 0},
                {1}, {32});
  const auto commands = device->prepare(list).value();
  const Ticket ticket = device->submit(*commands).value();
  const auto result = device->wait(ticket, no_time);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::internal);
  EXPECT_THAT(result.error().message,
              AllOf(HasSubstr("kernel 'add_f32': accesses 4 bytes at byte 256 of '"),
                    HasSubstr("', which has 256 bytes (threadgroup (0, 0, 0), thread (0, 0, 0), "
                              "elementwise.cpp:")));
  EXPECT_TRUE(device->wait(ticket, no_time));  // told once
}

// The convolution looks for rows before it waits for the kernel before it, which a plan never lets
// say where they are: it finds what there was before the list.
TEST(EmulatorDevice, ShowsAnEarlyKernelNothingOfTheKernelsBefore) {
  constexpr u32 channels = 256;
  const auto device = open_emulator_device({});
  const auto counts = upload(*device, std::vector<u32>{1, 0, 1}, "counts");
  const auto one_row = upload(*device, std::vector<u32>{0, 1}, "one row");
  const auto nothing = upload(*device, std::vector<u32>{0, 0}, "nothing");
  const auto row_starts = upload(*device, std::vector<u32>{0, 0}, "row starts");
  const auto x = upload(*device, std::vector<float>(channels, 1.0f), "x");
  const auto weight = upload(*device, std::vector<float>(std::size_t{4} * channels, 1.0f), "w");
  const auto rings = upload(*device, std::vector<float>(std::size_t{3} * channels), "rings");
  const auto y = upload(*device, std::vector<float>(channels), "y");
  CommandList list;
  list.dispatch(KernelId::add_f32,
                {whole(counts), whole(one_row), whole(nothing), whole(row_starts)}, AddParams{2, 0},
                {1}, {32});
  list.barrier();
  list.dispatch(KernelId::causal_conv_few_f32,
                {whole(counts), whole(x), whole(weight), whole(row_starts), whole(nothing),
                 whole(nothing), whole(nothing), whole(rings), whole(y)},
                CausalConvParams{channels, 4, std::uint64_t{3} * channels}, {1, 1}, {256});
  const auto commands = device->prepare(list).value();
  for (const bool is_there_before : {false, true}) {
    const Ticket ticket = device->submit(*commands).value();
    ASSERT_TRUE(device->wait(ticket, no_time));
    EXPECT_EQ(download(*device, y)[0] != 0.0f, is_there_before);
  }
}

TEST(EmulatorDevice, RefusesMemoryBeyondItsBudget) {
  const auto device = open_emulator_device({.memory_bytes = 1000});
  auto first = device->allocate(600, "weights").value();
  const auto second = device->allocate(500, "cache");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::out_of_memory);
  EXPECT_EQ(second.error().message,
            "emulator: no memory for buffer 'cache' of 500 bytes: 600 of 1000 bytes are in use");
  first.reset();
  EXPECT_EQ(device->counters().allocated_bytes, 0u);
  EXPECT_TRUE(device->allocate(1000, "cache"));
}

TEST(EmulatorDevice, WrapsWholePagesOfTheHost) {
  const auto device = open_emulator_device({});
  alignas(4096) static std::array<std::byte, 8192> memory{};
  const auto buffer = device->wrap(memory, "file").value();
  EXPECT_EQ(buffer->host().data(), memory.data());
  EXPECT_EQ(device->counters().allocated_bytes, 0u);
  EXPECT_FALSE(device->wrap(std::span(memory).subspan(8), "file"));
}

TEST(EmulatorDevice, FailsASubmissionAsAsked) {
  for (const bool loses_device : {false, true}) {
    const auto device =
        open_emulator_device({.failing_submission = 1, .loses_device = loses_device});
    const auto buffer = device->allocate(64, "a").value();
    CommandList list;
    list.fill(whole(buffer), 0);
    const auto commands = device->prepare(list).value();
    EXPECT_TRUE(device->wait(device->submit(*commands).value(), no_time));
    const auto failed = device->wait(device->submit(*commands).value(), no_time);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().message, "emulator: submission 1 fails as asked");
    EXPECT_EQ(device->is_lost(), loses_device);
    const auto next = device->submit(*commands);
    EXPECT_EQ(next.has_value(), !loses_device);
    if (!next) {
      EXPECT_EQ(next.error().message, "emulator: the device is lost, open it anew");
    }
  }
}

}  // namespace
}  // namespace hearth::backend::gpu
