#pragma once
/// The `loop` variable of {% for %}.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "chat/template/runtime.h"

namespace hearth::chat {

/// Position and neighbours of the current item. Lives as long as its loop runs; empty afterwards.
class LoopVariable final : public Object, public std::enable_shared_from_this<LoopVariable> {
 public:
  /// Renders the loop body over other items: what `loop(items)` does in recursive loops.
  using Recursion = std::function<Result<Value>(const Value& items)>;

  /// `items` is a list.
  LoopVariable(Value items, std::int64_t depth, Recursion recursion)
      : items_(std::move(items)), depth_(depth), recursion_(std::move(recursion)) {}

  [[nodiscard]] std::string_view kind() const override { return "LoopContext"; }
  [[nodiscard]] std::optional<Value> attribute(std::string_view name) const override;
  [[nodiscard]] bool is_callable() const override { return static_cast<bool>(recursion_); }
  Result<Value> call(Runtime& runtime, const Arguments& arguments) override;
  void release() override;

  void advance() { ++at_; }
  /// loop.cycle(...): the arguments in turn, one per iteration.
  Result<Value> cycle(const Arguments& arguments) const;
  /// loop.changed(...): whether the arguments differ from those of the last call.
  Result<Value> changed(Runtime& runtime, const Arguments& arguments);

 private:
  [[nodiscard]] Value item(std::int64_t at, std::string_view which) const;

  Value items_;
  std::int64_t at_ = 0;
  std::int64_t depth_;  // of recursive loops, from 0
  Recursion recursion_;
  std::optional<Value> last_changed_;
};

/// Releases a loop variable when its loop ends, however it ends: it may have come to hold itself.
class LoopEnd {
 public:
  explicit LoopEnd(LoopVariable& loop) : loop_(loop) {}
  LoopEnd(const LoopEnd&) = delete;
  LoopEnd& operator=(const LoopEnd&) = delete;
  ~LoopEnd() { loop_.release(); }

 private:
  LoopVariable& loop_;
};

}  // namespace hearth::chat
