#include "backend/gpu/metal/messages.h"

#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/gpu/kernels/elementwise.h"
#include "backend/gpu/metal/metal_device.h"
#include "tests/backend/gpu/metal/fake_metal.h"

namespace hearth::backend::gpu::metal {
namespace {

/// A line of the golden file: receiver, selector, types.
template <class Signature>
std::string describe(const std::string& receiver, const std::string& selector) {
  std::string line = receiver + "\t" + selector + "\t";
  const char* separator = "";
  for (const std::string_view type : Message<Signature>::types) {
    line.append(separator).append(type);
    separator = " ";
  }
  return line;
}

std::vector<std::string> table() {
  std::vector<std::string> lines;
#define HEARTH_METAL_LINE(receiver, name, selector, ...) \
  lines.push_back(describe<__VA_ARGS__>(#receiver, selector));
  HEARTH_METAL_MESSAGES(HEARTH_METAL_LINE)
#undef HEARTH_METAL_LINE
  return lines;
}

TEST(MetalMessages, AreThoseThatAppleDeclares) {
  std::ifstream file(HEARTH_TESTS_DIR "/golden/metal/messages.tsv");
  std::vector<std::string> declared;
  for (std::string line; std::getline(file, line);) {
    declared.push_back(line);
  }
  EXPECT_THAT(table(), testing::UnorderedElementsAreArray(declared));
}

TEST(MetalMessages, AreAllSent) {
  FakeMetal metal;
  const auto device = open_metal_device(FakeMetal::runtime(), "source").value();
  const auto a = device->allocate(64, "a").value();
  const auto b = device->allocate(64, "b").value();
  const std::array<std::byte, 64> zeros{};
  EXPECT_TRUE(device->upload(whole(a), zeros));
  alignas(16384) static std::array<std::byte, 16384> memory{};
  EXPECT_TRUE(device->wrap(memory, "file"));
  CommandList list;
  for (int i = 0; i < 2; ++i) {
    list.dispatch(KernelId::add_f32, {{a, 0, 4}, {a, 0, 32}, {a, 32, 32}, {b, 0, 32}},
                  AddParams{8, 0}, {1}, {32});
    list.barrier();
  }
  list.copy(whole(a), whole(b));
  const auto commands = device->prepare(list).value();
  metal.errors = {0, 1};
  EXPECT_TRUE(device->submit(*commands));
  const Ticket failing = device->submit(*commands).value();
  metal.n_busy_queries = 2;
  EXPECT_FALSE(device->wait(failing, std::chrono::minutes(1)));

  std::set<std::string> unsent;
#define HEARTH_METAL_SELECTOR(receiver, name, selector, ...) unsent.insert(selector);
  HEARTH_METAL_MESSAGES(HEARTH_METAL_SELECTOR)
#undef HEARTH_METAL_SELECTOR
  for (const auto& [class_name, selector] : metal.objects.sent) {
    unsent.erase(selector);
  }
  EXPECT_THAT(unsent, testing::IsEmpty());
}

// What a Mac does as well; the fake would be of no use if it did not.
TEST(MetalMessages, ThatNobodyUnderstandsEndTheProcess) {
  FakeMetal metal;
  const Runtime runtime = FakeMetal::runtime();
  const Object string = metal.objects.make<FakeObject>("NSString").id();
  const Message<void()> misspelled(runtime, "UTF8Sting");
  EXPECT_DEATH(misspelled(string), "NSString does not understand UTF8Sting");
  const Message<void(UInteger)> wrong_types(runtime, "UTF8String");
  EXPECT_DEATH(wrong_types(string, 1), "NSString takes other types in UTF8String");
  runtime.release(string);
}

}  // namespace
}  // namespace hearth::backend::gpu::metal
