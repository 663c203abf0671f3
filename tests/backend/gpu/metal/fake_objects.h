#pragma once
/// What stands for Metal's objects. Included by the two files of the fake alone.

#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/backend/gpu/metal/fake_metal.h"

namespace hearth::backend::gpu::metal {

/// The one that lives.
FakeMetal& fake_metal();

struct FakeString final : FakeObject {
  explicit FakeString(std::string_view characters) : FakeObject("NSString"), text(characters) {}
  std::string text;
};
struct FakeError final : FakeObject {
  FakeError(Integer number, std::string_view what)
      : FakeObject("NSError"), code(number), text(what) {}
  Integer code;
  std::string text;
};
struct FakeOptions final : FakeObject {
  FakeOptions() : FakeObject("MTLCompileOptions") {}
  LanguageVersion version{};
  bool has_fast_math = true;
};
/// A kernel of the library, compiled or not.
struct FakeKernel final : FakeObject {
  FakeKernel(std::string name, const emulator::EmulatedKernel& its_kernel)
      : FakeObject(std::move(name)), kernel(&its_kernel) {}
  const emulator::EmulatedKernel* kernel;
};
struct FakeFence final : FakeObject {
  FakeFence() : FakeObject("MTLFence") {}
  bool is_updated = false;  // by anything yet
};
struct FakeEvent final : FakeObject {
  FakeEvent() : FakeObject("MTLSharedEvent") {}
  UInteger value = 0;
};
struct FakeBuffer final : FakeObject {
  explicit FakeBuffer(std::size_t bytes);
  explicit FakeBuffer(std::span<std::byte> of_others)
      : FakeObject("MTLBuffer"), memory(of_others) {}
  void end() override;

  std::vector<std::byte> own;
  std::span<std::byte> memory;
};

template <class T>
T& find(Object object) {
  return fake_metal().objects.find<T>(object);
}
/// An object that belongs to the caller, as methods named "new" return it.
template <class T, class... Arguments>
Object new_object(Arguments&&... arguments) {
  return fake_metal().objects.make<T>(std::forward<Arguments>(arguments)...).id();
}
/// An object that belongs to the innermost pool, as all other methods return it.
template <class T, class... Arguments>
Object pooled_object(Arguments&&... arguments) {
  auto& objects = fake_metal().objects;
  return objects.autorelease(objects.make<T>(std::forward<Arguments>(arguments)...));
}
inline void expect_class(Object object, std::string_view name) {
  EXPECT_EQ(find<FakeObject>(object).class_name, name);
}

/// Methods of queues, command buffers, encoders and events.
const FakeMethods& work_methods();

}  // namespace hearth::backend::gpu::metal
