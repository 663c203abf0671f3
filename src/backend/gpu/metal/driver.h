#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backend/gpu/metal/messages.h"
#include "backend/gpu/metal/reference.h"

namespace hearth::backend::gpu::metal {

/// The GPU in use: its queue, the library of kernels, what orders and counts its work, the buffers
/// that have to stay resident. Shared by the device and its buffers, which may be freed after it.
class Driver {
 public:
  /// Compiles `source`. Errors: those of open_metal_device().
  static Result<std::shared_ptr<Driver>> open(const Runtime& runtime, const std::string& source);
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  [[nodiscard]] const Runtime& runtime() const { return runtime_; }
  [[nodiscard]] const Messages& messages() const { return messages_; }
  [[nodiscard]] Object device() const { return device_.get(); }
  [[nodiscard]] Object queue() const { return queue_.get(); }
  /// Every encoder waits for it and updates it, so they run one after the other: buffers are
  /// untracked, and without it Metal would run them in any order.
  [[nodiscard]] Object fence() const { return fence_.get(); }
  /// Counts work that is done.
  [[nodiscard]] Object event() const { return event_.get(); }

  /// Compiles a kernel. Errors: unsupported, with what the compiler says.
  [[nodiscard]] Result<Owned> make_pipeline(const std::string& kernel) const;

  /// The buffer stays wired, from the next submission on until it is let go. Before macOS 15 Metal
  /// unwires what was not used for a while.
  void keep_resident(Object buffer);
  void let_go(Object buffer);
  /// Tells Metal of the buffers that have come.
  void settle_residency();

  [[nodiscard]] Owned own(Object object) const { return {runtime_, object}; }
  /// A string of the pool's.
  [[nodiscard]] Object to_string(const std::string& text) const;
  [[nodiscard]] std::string to_text(Object string) const;

  std::uint64_t allocated_bytes = 0;
  bool is_fence_updated = false;  // by anything yet

 private:
  explicit Driver(const Runtime& runtime) : runtime_(runtime) {}
  Result<void> start(const std::string& source);
  Result<void> make_library(const std::string& source);
  void make_residency_set();

  Runtime runtime_;
  Messages messages_{runtime_};
  Owned device_;
  Owned queue_;
  Owned fence_;
  Owned event_;
  Owned library_;
  Owned residency_set_;  // none before macOS 15
  bool residency_changed_ = false;
};

}  // namespace hearth::backend::gpu::metal
