#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <vector>

#include "backend/gpu/metal/encoder.h"

namespace hearth::backend::gpu::metal {

/// Work that was handed in, in its order, and what became of it.
class Timeline {
 public:
  explicit Timeline(std::shared_ptr<Driver> driver) : driver_(std::move(driver)) {}
  /// Waits for all work.
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  /// Hands in what was encoded, and keeps buffers alive until it is done. Returns its number.
  /// Errors: those of Encoder::finish().
  Result<UInteger> hand_in(Encoder& encoder, std::vector<BufferPart> keeps);
  /// True once everything up to that number is done, false on time-out, which is rounded up to
  /// milliseconds. Errors: internal, or out_of_memory, for work that failed; each is told once.
  Result<bool> wait(UInteger number, std::chrono::nanoseconds timeout);
  /// Waits for everything. Errors: those of wait().
  Result<void> finish();

  /// The GPU takes no more work from this process.
  [[nodiscard]] bool is_lost() const { return is_lost_; }

 private:
  struct Work {
    UInteger number = 0;
    std::vector<Owned> command_buffers;
    std::vector<BufferPart> keeps;
  };
  using Clock = std::chrono::steady_clock;

  bool is_done(const Work& work, Clock::time_point deadline) const;
  Result<void> outcome_of(const Work& work);

  std::shared_ptr<Driver> driver_;
  std::deque<Work> pending_;  // not known to be done
  UInteger n_works_ = 0;
  bool is_lost_ = false;
};

}  // namespace hearth::backend::gpu::metal
