#pragma once
/// What one render may use. Templates come from model files and are hostile input.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/result.h"

namespace hearth::chat {

/// The defaults leave room for a conversation of thousands of messages and stop a hostile template
/// within a few seconds.
struct Limits {
  std::int64_t n_steps = 20'000'000;      // evaluated nodes and list items made
  std::size_t output_bytes = 16u << 20;   // of the rendered prompt, and of any one text
  std::size_t live_bytes = 256u << 20;    // of all texts, lists and dicts at one time
  std::size_t copied_bytes = 4ull << 30;  // of all texts ever made: about a second of copying
  std::size_t list_items = 100'000;       // of any list a template makes, as in Jinja's sandbox
  std::size_t n_objects = 100'000;        // namespaces and macros
  int n_nested_calls = 64;                // macros calling macros
  int depth = 300;  // nested evaluations, 1 KiB of stack each; a thread may have only 512 KiB
};

/// Counts down what is left of the limits. Errors: out_of_memory naming the limit. One thread at a
/// time.
class Budget {
 public:
  explicit Budget(const Limits& limits)
      : limits_(limits), steps_left_(limits.n_steps), copies_left_(limits.copied_bytes) {}

  Result<void> spend_steps(std::size_t n);
  /// For a search through `n_bytes`.
  Result<void> spend_scan(std::size_t n_bytes) { return spend_steps(1 + n_bytes / 4); }
  /// For `n` small objects that no lease counts (a method, an undefined, a variable that a macro
  /// keeps): so many steps that all of them, at up to 250 bytes each, stay near the limit of live
  /// bytes.
  Result<void> spend_objects(std::size_t n = 1) { return spend_steps(16 * n); }
  /// For a list of `n_items` that is about to be made.
  Result<void> spend_list(std::size_t n_items);
  /// For `n_bytes` about to be appended to a text that has `n_before`.
  Result<void> spend_text(std::size_t n_bytes, std::size_t n_before);

  /// Counts `n_bytes` as live until the returned object is gone.
  Result<std::shared_ptr<const void>> lease(std::size_t n_bytes);

  /// Whether evaluation may nest one level deeper than `depth`.
  [[nodiscard]] Result<void> check_depth(int depth) const;

  [[nodiscard]] const Limits& limits() const { return limits_; }

 private:
  Limits limits_;
  std::int64_t steps_left_;
  std::size_t copies_left_;
  std::shared_ptr<std::size_t> live_bytes_ = std::make_shared<std::size_t>(0);
};

}  // namespace hearth::chat
