#include "tests/backend/gpu/metal/fake_runtime.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace hearth::backend::gpu::metal {
namespace {

FakeRuntime* fake = nullptr;  // the one that lives

std::string_view text_of(Selector selector) {
  return reinterpret_cast<const char*>(selector);
}

}  // namespace

FakeRuntime::FakeRuntime(FakeMethods methods) : methods_(std::move(methods)) {
  fake = this;
}

FakeRuntime::~FakeRuntime() {
  EXPECT_TRUE(pools_.empty());
  for (const auto& [id, object] : objects_) {
    EXPECT_EQ(object->n_references, 0) << object->class_name;
  }
  fake = nullptr;
}

void FakeRuntime::give_up(const std::string& what, std::string_view which) {
  std::fprintf(stderr, "fake runtime: %s %s\n", what.c_str(), std::string(which).c_str());
  std::abort();
}

Object FakeRuntime::find_class(const char* name) {
  auto& found = classes_[name];
  if (!found) {
    found = std::make_unique<FakeObject>(std::string("+") + name);
  }
  return found->id();
}

Object FakeRuntime::autorelease(FakeObject& object) {
  if (pools_.empty()) {
    give_up("outside every pool:", object.class_name);
  }
  pools_.back().push_back(object.id());
  return object.id();
}

void FakeRuntime::release(Object object) {
  FakeObject& found = find(object);
  if (--found.n_references == 0) {
    found.end();
  }
}

void FakeRuntime::pop_pool(void* pool) {
  EXPECT_EQ(pool, reinterpret_cast<void*>(pools_.size())) << "pools end in reverse order";
  const std::vector<Object> kept = std::move(pools_.back());
  pools_.pop_back();
  for (const Object object : kept) {
    release(object);
  }
}

bool FakeRuntime::responds(Object object, Selector selector) {
  const std::string_view name = text_of(selector);
  return methods_.contains({find(object).class_name, name}) && !absent_selectors.contains(name);
}

Method FakeRuntime::find_method(Object receiver, Selector selector,
                                std::span<const std::string_view> types) {
  const auto is_receiver = [receiver](const auto& each) { return each.second->id() == receiver; };
  const auto class_found = std::ranges::find_if(classes_, is_receiver);
  const std::string& class_name =
      class_found != classes_.end() ? class_found->second->class_name : find(receiver).class_name;
  const std::string_view name = text_of(selector);
  const auto found = methods_.find({class_name, name});
  if (found == methods_.end() || absent_selectors.contains(name)) {
    give_up(class_name + " does not understand", name);
  }
  if (!std::ranges::equal(found->second.types, types)) {
    give_up(class_name + " takes other types in", name);
  }
  sent.emplace(class_name, name);
  return found->second.code;
}

Runtime FakeRuntime::functions() {
  return {
      .find_class = [](const char* name) { return fake->find_class(name); },
      .find_selector =
          [](const char* name) {
            const char* kept = fake->selectors_.insert(name).first->c_str();
            return reinterpret_cast<Selector>(const_cast<char*>(kept));
          },
      .retain =
          [](Object object) {
            ++fake->find(object).n_references;
            return object;
          },
      .release = [](Object object) { fake->release(object); },
      .push_pool =
          [] {
            fake->pools_.emplace_back();
            return reinterpret_cast<void*>(fake->pools_.size());
          },
      .pop_pool = [](void* pool) { fake->pop_pool(pool); },
      .find_method =
          [](Object receiver, Selector selector, std::span<const std::string_view> types) {
            return fake->find_method(receiver, selector, types);
          },
  };
}

}  // namespace hearth::backend::gpu::metal
