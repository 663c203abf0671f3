#include "backend/gpu/metal/timeline.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/fail.h"

namespace hearth::backend::gpu::metal {
namespace {

/// What Metal's errors of command buffers mean, where it is more than that the work failed.
/// Source: developer.apple.com, MTLCommandBufferError.
struct Fault {
  Integer code;
  ErrorCode meaning;
  bool loses_device;
};
constexpr Fault faults[]{
    {4, ErrorCode::internal, true},        // access revoked, after too many faults
    {7, ErrorCode::internal, true},        // not permitted
    {8, ErrorCode::out_of_memory, false},  // found only when the work begins
    {11, ErrorCode::internal, true},       // device removed
};

}  // namespace

Timeline::~Timeline() {
  const Pool pool(driver_->runtime());
  for (const Work& work : pending_) {
    driver_->messages().wait_until_completed(work.command_buffers.back().get());
  }
  pending_.clear();
}

Result<UInteger> Timeline::hand_in(Encoder& encoder, std::vector<BufferPart> keeps) {
  const UInteger number = n_works_ + 1;
  HEARTH_ASSIGN(auto command_buffers, encoder.finish(number));
  pending_.push_back({number, std::move(command_buffers), std::move(keeps)});
  n_works_ = number;
  return number;
}

/// Whether the work was done by then, well or not.
bool Timeline::is_done(const Work& work, Clock::time_point deadline) const {
  const Object last = work.command_buffers.back().get();
  while (driver_->messages().status(last) < CommandBufferStatus::completed) {
    const auto left = deadline - Clock::now();
    if (left <= std::chrono::nanoseconds(0)) {
      return false;
    }
    // Work that fails does not signal, so its status is looked at again soon.
    constexpr UInteger longest_ms = 10;
    const auto left_ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    if (driver_->messages().wait_for_value(
            driver_->event(), work.number,
            std::min<UInteger>(static_cast<UInteger>(left_ms), longest_ms))) {
      driver_->messages().wait_until_completed(last);  // the status follows the signal at once
    }
  }
  return true;
}

/// What became of work that is done.
Result<void> Timeline::outcome_of(const Work& work) {
  for (const Owned& command_buffer : work.command_buffers) {
    if (driver_->messages().status(command_buffer.get()) != CommandBufferStatus::error) {
      continue;
    }
    const Object error = driver_->messages().error(command_buffer.get());
    const Integer code = error == nullptr ? 0 : driver_->messages().error_code(error);
    const auto* known = std::ranges::find(faults, code, &Fault::code);
    const bool is_known = known != std::end(faults);
    is_lost_ = is_lost_ || (is_known && known->loses_device);
    return fail(is_known ? known->meaning : ErrorCode::internal,
                "metal: running work failed: {} (error {})",
                error == nullptr ? "unknown error"
                                 : driver_->to_text(driver_->messages().error_text(error)),
                code);
  }
  return {};
}

Result<bool> Timeline::wait(UInteger number, std::chrono::nanoseconds timeout) {
  const Pool pool(driver_->runtime());
  const auto now = Clock::now();
  const auto deadline =
      timeout < Clock::time_point::max() - now ? now + timeout : Clock::time_point::max();
  while (!pending_.empty() && pending_.front().number <= number) {
    if (!is_done(pending_.front(), deadline)) {
      return false;
    }
    const Work work = std::move(pending_.front());
    pending_.pop_front();
    HEARTH_TRY(outcome_of(work));
  }
  return true;
}

Result<void> Timeline::finish() {
  HEARTH_TRY(wait(n_works_, std::chrono::nanoseconds::max()));
  return {};
}

}  // namespace hearth::backend::gpu::metal
