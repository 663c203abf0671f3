#pragma once
/// Reference counts. Methods whose names begin with "new" give a reference away; what all others
/// return belongs to the pool that was opened last.

#include <utility>

#include "backend/gpu/metal/runtime.h"

namespace hearth::backend::gpu::metal {

/// Keeps what methods return alive until it ends. Pools end in reverse order.
class Pool {
 public:
  explicit Pool(const Runtime& runtime) : runtime_(runtime), pool_(runtime.push_pool()) {}
  ~Pool() { runtime_.pop_pool(pool_); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

 private:
  const Runtime& runtime_;
  void* pool_;
};

/// One reference to an object, or none. The runtime has to outlive it.
class Owned {
 public:
  Owned() = default;
  /// Takes over a reference that the caller has.
  Owned(const Runtime& runtime, Object object) : runtime_(&runtime), object_(object) {}
  /// Adds a reference to one that a pool has.
  static Owned retain(const Runtime& runtime, Object object) {
    return {runtime, runtime.retain(object)};
  }
  ~Owned() {
    if (object_ != nullptr) {
      runtime_->release(object_);
    }
  }
  Owned(Owned&& other) noexcept
      : runtime_(other.runtime_), object_(std::exchange(other.object_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(runtime_, other.runtime_);
    std::swap(object_, other.object_);
    return *this;
  }

  [[nodiscard]] Object get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  const Runtime* runtime_ = nullptr;
  Object object_ = nullptr;
};

}  // namespace hearth::backend::gpu::metal
