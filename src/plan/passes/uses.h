#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <vector>

#include "plan/passes/passes.h"

namespace hearth::plan {

/// Who writes and who reads each value of a launch list. Valid until the list changes.
class Uses {
 public:
  explicit Uses(const Draft& draft);

  /// Index of the launch that writes `value`.
  [[nodiscard]] std::size_t writer(graph::ValueId value) const {
    return writer_[graph::index(value)];
  }
  [[nodiscard]] const std::vector<std::size_t>& readers(graph::ValueId value) const {
    return readers_[graph::index(value)];
  }
  /// The one launch that reads `value`, if there is exactly one and nothing outside reads it.
  [[nodiscard]] std::optional<std::size_t> only_reader(graph::ValueId value) const;

 private:
  graph::ValueId result_;
  std::vector<std::size_t> writer_;
  std::vector<std::vector<std::size_t>> readers_;
};

/// The launch as a single op of type Op, or nullptr.
template <class Op>
const Op* as_op(const Launch& launch) {
  const auto* single = std::get_if<OpLaunch>(&launch);
  return single != nullptr ? std::get_if<Op>(&single->op) : nullptr;
}

/// Drops the launches at `indices`.
void erase_launches(std::vector<Launch>& launches, const std::set<std::size_t>& indices);

}  // namespace hearth::plan
