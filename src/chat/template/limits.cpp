#include "chat/template/limits.h"

#include "base/fail.h"

namespace hearth::chat {

Result<void> Budget::spend_steps(std::size_t n) {
  if (n > static_cast<std::size_t>(steps_left_)) {
    return fail(ErrorCode::out_of_memory, "the template takes more than {} steps", limits_.n_steps);
  }
  steps_left_ -= static_cast<std::int64_t>(n);
  return {};
}

Result<void> Budget::spend_text(std::size_t n_bytes, std::size_t n_before) {
  if (n_bytes > limits_.output_bytes || n_before > limits_.output_bytes - n_bytes) {
    return fail(ErrorCode::out_of_memory, "the template makes a text of more than {} bytes",
                limits_.output_bytes);
  }
  if (n_bytes > copies_left_) {
    return fail(ErrorCode::out_of_memory, "the template makes more than {} bytes of text in all",
                limits_.copied_bytes);
  }
  copies_left_ -= n_bytes;
  return {};
}

Result<std::shared_ptr<const void>> Budget::lease(std::size_t n_bytes) {
  constexpr std::size_t overhead_bytes = 160;  // of even the shortest text or list and its handle
  const std::size_t n = n_bytes + overhead_bytes;
  if (n > limits_.live_bytes || *live_bytes_ > limits_.live_bytes - n) {
    return fail(ErrorCode::out_of_memory, "the template keeps more than {} bytes of values",
                limits_.live_bytes);
  }
  *live_bytes_ += n;
  // The deleter shares the counter, because a text may outlive the budget.
  return std::shared_ptr<const void>(live_bytes_.get(),
                                     [live = live_bytes_, n](const void*) { *live -= n; });
}

Result<void> Budget::spend_list(std::size_t n_items) {
  if (n_items > limits_.list_items) {
    return fail(ErrorCode::out_of_memory, "the template makes a list of {} items, more than {}",
                n_items, limits_.list_items);
  }
  return spend_steps(n_items);
}

Result<void> Budget::check_depth(int depth) const {
  if (depth >= limits_.depth) {
    return fail(ErrorCode::out_of_memory, "the template nests more than {} levels deep",
                limits_.depth);
  }
  return {};
}

}  // namespace hearth::chat
