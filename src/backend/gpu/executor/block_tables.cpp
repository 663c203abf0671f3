#include "backend/gpu/executor/block_tables.h"

#include <algorithm>

#include "base/assert.h"
#include "base/bytes.h"

namespace hearth::backend::gpu {
namespace {

constexpr std::int64_t first_capacity = 16;  // sequences

}  // namespace

Result<BlockTables> BlockTables::create(Device& device, std::int64_t stride) {
  BlockTables tables;
  tables.stride_ = std::max<std::int64_t>(stride, 1);
  HEARTH_TRY(tables.allocate(device, first_capacity));
  return tables;
}

Result<void> BlockTables::allocate(Device& device, std::int64_t n_sequences) {
  const auto bytes = static_cast<std::uint64_t>(n_sequences * stride_) * sizeof(std::int32_t);
  HEARTH_ASSIGN(auto buffer, device.allocate(bytes, "block tables"));
  HEARTH_ASSIGN(host_, device.allocate_host(bytes, "block tables"));
  part_ = whole(std::move(buffer));
  capacity_ = n_sequences;
  std::ranges::fill(host_->host(), std::byte{0xff});  // -1: no block, so that all are copied
  return {};
}

std::span<std::int32_t> BlockTables::host_table(std::int64_t sequence) const {
  return {as_array<std::int32_t>(host_->host().data()) + sequence * stride_,
          static_cast<std::size_t>(stride_)};
}

Result<void> BlockTables::update(Device& device, const graph::StepView& step) {
  if (step.table_stride == 0) {
    return {};
  }
  const auto width = static_cast<std::size_t>(step.table_stride);
  const auto n_sequences = static_cast<std::int64_t>(step.block_tables.size() / width);
  HEARTH_ASSERT(step.table_stride <= stride_);
  if (n_sequences > capacity_) {
    HEARTH_TRY(allocate(device, std::max(n_sequences, 2 * capacity_)));
  }
  for (std::int64_t sequence = 0; sequence < n_sequences; ++sequence) {
    const auto table = step.block_tables.subspan(static_cast<std::size_t>(sequence) * width, width);
    const auto known = host_table(sequence).first(width);
    const auto [first, last] = std::ranges::mismatch(table, known);
    if (first == table.end()) {
      continue;
    }
    const auto begin = static_cast<std::size_t>(first - table.begin());
    std::ranges::copy(table.subspan(begin), known.begin() + static_cast<std::ptrdiff_t>(begin));
    const std::uint64_t offset =
        (static_cast<std::uint64_t>(sequence * stride_) + begin) * sizeof(std::int32_t);
    const std::uint64_t bytes = (width - begin) * sizeof(std::int32_t);
    HEARTH_TRY(device.copy({part_.buffer, offset, bytes}, {host_, offset, bytes}));
  }
  return {};
}

}  // namespace hearth::backend::gpu
