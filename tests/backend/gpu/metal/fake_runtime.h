#pragma once
/// An Objective-C runtime without Objective-C: objects with counted references, pools, and methods
/// that are found by class and selector. A message to an object that has ended, or an object that
/// nobody's pool keeps, is a failure of the test; a message that no method answers to, or of other
/// types than the method's, ends the process, as on a Mac.

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "backend/gpu/metal/messages.h"

namespace hearth::backend::gpu::metal {

struct FakeObject {
  explicit FakeObject(std::string name) : class_name(std::move(name)) {}
  virtual ~FakeObject() = default;
  FakeObject(const FakeObject&) = delete;
  FakeObject& operator=(const FakeObject&) = delete;
  /// When the last reference is gone.
  virtual void end() {}

  [[nodiscard]] Object id() { return reinterpret_cast<Object>(this); }

  std::string class_name;  // of a class itself: with "+" before it
  int n_references = 1;
};

/// A method with the types that it takes, written by hand beside the code that it stands for.
struct FakeMethod {
  template <class Answer, class... Parameters>
  FakeMethod(Answer (*function)(Object, Selector, Parameters...))  // NOLINT: a table's entry
      : types{type_code<Answer>(), type_code<Parameters>()...},
        code(reinterpret_cast<Method>(function)) {}

  std::vector<std::string_view> types;
  Method code;
};
/// By class and selector.
using FakeMethods = std::map<std::pair<std::string_view, std::string_view>, FakeMethod>;

/// One at a time. At its end every object has to be released, and every pool to be closed.
class FakeRuntime {
 public:
  explicit FakeRuntime(FakeMethods methods);
  ~FakeRuntime();
  FakeRuntime(const FakeRuntime&) = delete;
  FakeRuntime& operator=(const FakeRuntime&) = delete;

  /// All but create_system_default_device.
  static Runtime functions();

  /// An object with one reference, which is the caller's.
  template <class T, class... Arguments>
  T& make(Arguments&&... arguments) {
    auto object = std::make_unique<T>(std::forward<Arguments>(arguments)...);
    T& made = *object;
    objects_.emplace(made.id(), std::move(object));
    return made;
  }
  /// Gives the caller's reference to the innermost pool.
  Object autorelease(FakeObject& object);
  /// The object, which must not have ended.
  template <class T = FakeObject>
  T& find(Object object) {
    const auto found = objects_.find(object);
    if (found == objects_.end()) {
      give_up("a message to something that is no object", "");
    }
    EXPECT_GT(found->second->n_references, 0) << found->second->class_name << " has ended";
    return dynamic_cast<T&>(*found->second);
  }
  [[nodiscard]] bool responds(Object object, Selector selector);

  std::set<std::string_view> absent_selectors;         // of an older system
  std::set<std::pair<std::string, std::string>> sent;  // messages, by class and selector

 private:
  [[noreturn]] static void give_up(const std::string& what, std::string_view which);
  Object find_class(const char* name);
  void release(Object object);
  void pop_pool(void* pool);
  Method find_method(Object receiver, Selector selector, std::span<const std::string_view> types);

  FakeMethods methods_;
  std::map<Object, std::unique_ptr<FakeObject>> objects_;  // those that have ended, too
  std::map<std::string, std::unique_ptr<FakeObject>> classes_;
  std::set<std::string> selectors_;
  std::vector<std::vector<Object>> pools_;
};

}  // namespace hearth::backend::gpu::metal
