#include "backend/gpu/metal/metal_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "backend/gpu/kernels/elementwise.h"
#include "backend/gpu/metal/metal_source.h"
#include "base/format.h"
#include "tests/backend/gpu/metal/fake_metal.h"

namespace hearth::backend::gpu::metal {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr auto no_time = std::chrono::nanoseconds(0);
constexpr auto long_time = std::chrono::minutes(1);

std::unique_ptr<Device> open() {
  return open_metal_device(FakeMetal::runtime(), library_source()).value();
}

/// Why the GPU cannot be opened.
Error refusal() {
  const auto device = open_metal_device(FakeMetal::runtime(), library_source());
  EXPECT_FALSE(device);
  return device.error();
}

/// Numbers of rows for kernels: one.
std::shared_ptr<Buffer> one_row(Device& device) {
  const u32 one = 1;
  auto counts = device.allocate(sizeof one, "counts").value();
  EXPECT_TRUE(device.upload(whole(counts), std::as_bytes(std::span(&one, 1))));
  return counts;
}

/// Adds the halves of a buffer of 64 bytes.
void add_halves(CommandList& list, const std::shared_ptr<Buffer>& counts,
                const std::shared_ptr<Buffer>& from, const BufferPart& to) {
  list.dispatch(KernelId::add_f32, {whole(counts), {from, 0, 32}, {from, 32, 32}, to},
                AddParams{8, 0}, {1}, {32});
}

/// Work of the shortest kind, ready to be submitted.
std::unique_ptr<PreparedCommands> small_work(Device& device) {
  CommandList list;
  list.fill(whole(device.allocate(64, "a").value()), 0);
  return device.prepare(list).value();
}

TEST(MetalDevice, SaysWhatTheGpuIs) {
  const FakeMetal metal;
  const Capabilities capabilities = open()->capabilities();
  EXPECT_EQ(capabilities.name, "Fake M4 Max");
  EXPECT_EQ(capabilities.architecture, "applegpu_g16s");
  EXPECT_EQ(capabilities.memory_bytes, metal.memory_bytes);
  EXPECT_TRUE(capabilities.is_host_visible);
  EXPECT_TRUE(capabilities.wraps_host_memory);
}

TEST(MetalDevice, SaysInOneSentenceWhyThereIsNone) {
  FakeMetal metal;
  metal.library_refusal = "program_source:7:1: error: unknown type name 'flaot'";
  EXPECT_EQ(refusal(), (Error{ErrorCode::unsupported,
                              "metal: compiling the kernels failed: program_source:7:1: error: "
                              "unknown type name 'flaot'"}));
  metal.is_old = true;
  EXPECT_EQ(refusal(),
            (Error{ErrorCode::unsupported,
                   "Metal's GPU 'Fake M4 Max' is too old: expected Apple's M1 or newer"}));
  metal.has_gpu = false;
  EXPECT_EQ(refusal(), (Error{ErrorCode::unsupported, "Metal sees no GPU on this machine"}));
}

TEST(MetalDevice, ShowsThatTheGpuWorksBeforeAnybodyReliesOnIt) {
  FakeMetal metal;
  metal.errors = {4};
  EXPECT_EQ(refusal(),
            (Error{ErrorCode::internal, "metal: running work failed: it said so (error 4)"}));
  metal.gives_command_buffers = false;
  EXPECT_EQ(refusal(), (Error{ErrorCode::internal, "metal: the queue gives no command buffer"}));
}

// On a Mac this opens the GPU and compiles every kernel; everywhere else it says what is missing.
TEST(MetalDevice, OpensOrSaysWhatIsMissingHere) {
  const auto device = open_metal_device();
  if (!device) {
    EXPECT_EQ(device.error().code, ErrorCode::unsupported);
    EXPECT_THAT(device.error().message, AnyOf(StartsWith("no Metal on this machine: "),
                                              HasSubstr("sees no GPU"), HasSubstr("too old")));
    return;
  }
  for (std::size_t i = 0; i < all_kernels().size(); ++i) {
    const auto compiled = (*device)->compile(static_cast<KernelId>(i));
    EXPECT_TRUE(compiled) << compiled.error().message;
  }
}

TEST(MetalDevice, RefusesKernelsThatTheGpuCannotRun) {
  FakeMetal metal;
  metal.has_empty_library = true;
  EXPECT_EQ(open()->compile(KernelId::add_f32).error().message,
            "metal: the library has no kernel 'add_f32'");
  metal.has_empty_library = false;
  metal.kernel_refusal = "too many registers";
  EXPECT_EQ(open()->compile(KernelId::add_f32).error().message,
            "metal: compiling kernel 'add_f32' failed: too many registers");
  metal.kernel_refusal.clear();
  metal.most_threads = 64;
  EXPECT_EQ(open()->compile(KernelId::add_f32).error().message,
            "metal: kernel 'add_f32' runs with 64 threads in simdgroups of 32, expected 256 in 32");
}

TEST(MetalDevice, LaunchesAListInItsOrder) {
  FakeMetal metal;
  const auto device = open();
  const auto counts = one_row(*device);
  const auto a = device->allocate(64, "a").value();
  const auto b = device->allocate(64, "b").value();
  CommandList list;
  list.fill(whole(a), 0);
  list.barrier();
  add_halves(list, counts, a, {b, 0, 32});
  list.barrier();
  list.dispatch(KernelId::gated_f32, {whole(counts), {b, 0, 32}, {b, 32, 32}, {a, 0, 32}},
                ActivationParams{8, 0, 0}, {1}, {32});
  const auto commands = device->prepare(list).value();
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(device->wait(device->submit(*commands).value(), no_time).value());
  }
  EXPECT_THAT(metal.launched, ElementsAre("add_f32", "gated_f32", "add_f32", "gated_f32"));
}

// The fake runs what is between two barriers backwards.
TEST(MetalDevice, KeepsTheOrderOfAChainOfBarriers) {
  FakeMetal metal;
  const auto device = open();
  const auto counts = one_row(*device);
  const auto a = device->allocate(64, "a").value();
  const auto b = device->allocate(64, "b").value();
  const std::vector<float> ones(16, 1.0f);
  ASSERT_TRUE(device->upload(whole(a), std::as_bytes(std::span(ones))));
  ASSERT_TRUE(device->upload(whole(b), std::as_bytes(std::span(ones))));
  constexpr int n_rounds = 60;  // more dispatches than a command buffer takes
  CommandList list;
  for (int i = 0; i < n_rounds; ++i) {
    add_halves(list, counts, a, {b, 0, 32});  // b0 = a0 + 1
    list.barrier();
    add_halves(list, counts, b, {a, 0, 32});  // a0 = b0 + 1
    list.barrier();
  }
  metal.n_commits = 0;
  const auto commands = device->prepare(list).value();
  ASSERT_TRUE(device->wait(device->submit(*commands).value(), no_time).value());
  std::vector<float> result(16);
  ASSERT_TRUE(device->download(std::as_writable_bytes(std::span(result)), whole(a)));
  EXPECT_EQ(result.front(), 1.0f + 2 * n_rounds);
  EXPECT_EQ(metal.n_commits, 3);
}

TEST(MetalDevice, WaitsNoLongerThanItIsToldTo) {
  FakeMetal metal;
  const auto device = open();
  const auto commands = small_work(*device);
  const Ticket ticket = device->submit(*commands).value();
  metal.n_busy_queries = 5;
  EXPECT_FALSE(device->wait(ticket, no_time).value());
  EXPECT_TRUE(device->wait(ticket, long_time).value());
  EXPECT_TRUE(device->wait(ticket, no_time).value());
}

TEST(MetalDevice, RefusesMemoryBeyondWhatTheGpuMayUse) {
  FakeMetal metal;
  metal.memory_bytes = 1000;
  metal.largest_buffer = 700;
  const auto device = open();
  EXPECT_EQ(device->allocate(800, "cache").error(),
            (Error{ErrorCode::out_of_memory,
                   "metal: no memory for buffer 'cache' of 800 bytes: a buffer has at most 700"}));
  auto weights = device->allocate(600, "weights").value();
  EXPECT_EQ(device->counters().allocated_bytes, 600u);
  EXPECT_EQ(device->allocate(500, "cache").error(),
            (Error{ErrorCode::out_of_memory,
                   "metal: no memory for buffer 'cache' of 500 bytes: 600 of 1000 bytes are in "
                   "use"}));
  EXPECT_EQ(device->allocate(0, "nothing").error().code, ErrorCode::out_of_memory);
  weights.reset();
  EXPECT_TRUE(device->allocate(500, "cache"));
}

TEST(MetalDevice, WrapsWholePagesOfTheHost) {
  const FakeMetal metal;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<std::byte> memory(4 * page);
  const std::size_t skip = page - reinterpret_cast<std::uintptr_t>(memory.data()) % page;
  const auto file = std::span(memory).subspan(skip, page + 100);  // ends inside a page
  const auto device = open();
  const auto buffer = device->wrap(file, "file").value();
  EXPECT_EQ(buffer->host().data(), file.data());
  EXPECT_EQ(buffer->size_bytes(), file.size());
  EXPECT_EQ(device->counters().allocated_bytes, 0u);
  EXPECT_EQ(device->wrap(file.subspan(8), "file").error().code, ErrorCode::invalid_argument);
}

TEST(MetalDevice, KeepsItsBuffersResidentWhileTheyLive) {
  FakeMetal metal;
  const auto device = open();
  auto a = device->allocate(64, "a").value();
  const auto commands = small_work(*device);
  EXPECT_TRUE(metal.resident.empty());
  ASSERT_TRUE(device->wait(device->submit(*commands).value(), no_time));
  EXPECT_EQ(metal.resident.size(), 2u);
  const int n_requests = metal.n_residency_requests;
  ASSERT_TRUE(device->wait(device->submit(*commands).value(), no_time));
  EXPECT_EQ(metal.n_residency_requests, n_requests);  // nothing has changed
  a.reset();
  EXPECT_EQ(metal.resident.size(), 1u);
}

TEST(MetalDevice, RunsWithoutResidencySets) {
  FakeMetal metal;
  metal.become_macos_14();
  const auto device = open();
  const auto commands = small_work(*device);
  EXPECT_TRUE(device->wait(device->submit(*commands).value(), no_time).value());
  EXPECT_TRUE(metal.resident.empty());
}

TEST(MetalDevice, RefusesCopiesAndFillsOfOddNumbersOfBytes) {
  const FakeMetal metal;
  const auto device = open();
  const auto a = device->allocate(64, "a").value();
  const auto b = device->allocate(64, "b").value();
  CommandList list;
  list.fill({a, 0, 6}, 0);
  EXPECT_EQ(device->prepare(list).error().message,
            "metal: fill: 6 bytes at byte 0 of buffer 'a', expected multiples of 4");
  EXPECT_EQ(device->copy({b, 0, 8}, {a, 2, 8}).error().message,
            "metal: copy: 8 bytes at byte 2 of buffer 'a', expected multiples of 4");
}

TEST(MetalDevice, TellsOnceOfWorkThatFailed) {
  FakeMetal metal;
  const auto device = open();
  const auto commands = small_work(*device);
  struct Case {
    Integer code;
    ErrorCode meaning;
  };
  for (const auto& [code, meaning] :
       {Case{3, ErrorCode::internal}, {8, ErrorCode::out_of_memory}}) {
    metal.errors = {code, 0};
    const Ticket failed = device->submit(*commands).value();
    const Ticket next = device->submit(*commands).value();
    EXPECT_EQ(device->wait(next, long_time).error(),
              (Error{meaning, format("metal: running work failed: it said so (error {})", code)}));
    EXPECT_TRUE(device->wait(failed, no_time).value());
    EXPECT_TRUE(device->wait(next, no_time).value());
    EXPECT_FALSE(device->is_lost());
  }
  metal.errors = {3};
  ASSERT_TRUE(device->submit(*commands));
  std::byte byte{};
  const auto buffer = device->allocate(1, "b").value();
  EXPECT_FALSE(device->download({&byte, 1}, whole(buffer)));  // what it reads may be missing
}

TEST(MetalDevice, IsLostWhenMetalTakesNoMoreWork) {
  for (const Integer code : {4, 7, 11}) {
    FakeMetal metal;
    const auto device = open();
    const auto commands = small_work(*device);
    metal.errors = {code};
    const Ticket ticket = device->submit(*commands).value();
    EXPECT_FALSE(device->wait(ticket, long_time));
    EXPECT_TRUE(device->is_lost());
    EXPECT_EQ(device->submit(*commands).error().message,
              "metal: Fake M4 Max is lost, open it anew");
  }
}

TEST(MetalDevice, MayEndBeforeItsBuffersAndBeforeItsWork) {
  FakeMetal metal;
  auto device = open();
  auto buffer = device->allocate(64, "a").value();
  auto commands = small_work(*device);
  ASSERT_TRUE(device->submit(*commands));
  metal.n_busy_queries = 100;
  device.reset();
  commands.reset();
  buffer.reset();
}

}  // namespace
}  // namespace hearth::backend::gpu::metal
