#include "backend/gpu/executor/step_memory.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/checked.h"

namespace hearth::backend::gpu {
namespace {

constexpr std::int64_t word_bytes = 4;

/// How many words each array takes.
struct ArraySize {
  BufferPart StepParts::* array;
  std::int64_t words;
};

std::array<ArraySize, 10> array_sizes(graph::RowBucket bucket) {
  return {{{&StepParts::counts, 3},
           {&StepParts::tokens, bucket.rows},
           {&StepParts::positions, bucket.rows},
           {&StepParts::sequences, bucket.rows},
           {&StepParts::logit_rows, bucket.logit_rows},
           {&StepParts::row_starts, bucket.rows + 1},
           {&StepParts::state_before, bucket.rows},
           {&StepParts::state_after, bucket.rows},
           {&StepParts::row_sources, bucket.rows},
           {&StepParts::row_targets, bucket.rows}}};
}

}  // namespace

Result<StepMemory> StepMemory::create(Device& device, graph::RowBucket bucket,
                                      std::vector<graph::RopeParams> ropes,
                                      const graph::WeightTable& weights) {
  StepMemory memory;
  memory.bucket_ = bucket;
  std::int64_t bytes = 0;
  const auto place = [&bytes](BufferPart& part, std::int64_t words) {
    part.offset = static_cast<std::uint64_t>(bytes);
    part.bytes = static_cast<std::uint64_t>(words * word_bytes);
    bytes = round_up(bytes + words * word_bytes, buffer_alignment);
  };
  for (const auto& [array, words] : array_sizes(bucket)) {
    place(memory.parts_.*array, words);
  }
  for (auto& rope : ropes) {
    graph::RopeTable table(rope, weights);
    memory.angles_.push_back({std::move(rope), std::move(table), {}});
    place(memory.angles_.back().part, bucket.rows * memory.angles_.back().params.n_rot);
  }
  HEARTH_ASSIGN(memory.device_, device.allocate(static_cast<std::uint64_t>(bytes), "step"));
  HEARTH_ASSIGN(memory.host_, device.allocate_host(static_cast<std::uint64_t>(bytes), "step"));
  std::ranges::fill(memory.host_->host(), std::byte{0});
  for (const auto& each : array_sizes(bucket)) {
    (memory.parts_.*each.array).buffer = memory.device_;
  }
  for (auto& angles : memory.angles_) {
    angles.part.buffer = memory.device_;
  }
  return memory;
}

bool StepMemory::serves(graph::RowBucket bucket,
                        const std::vector<graph::RopeParams>& ropes) const {
  return bucket == bucket_ && std::ranges::all_of(ropes, [this](const graph::RopeParams& rope) {
           return std::ranges::find(angles_, rope, &StepAngles::params) != angles_.end();
         });
}

const BufferPart& StepMemory::angles(const graph::RopeParams& params) const {
  const auto found = std::ranges::find(angles_, params, &StepAngles::params);
  HEARTH_ASSERT(found != angles_.end());
  return found->part;
}

template <class T>
T* StepMemory::host_array(const BufferPart& part) const {
  return as_array<T>(host_->host().data() + part.offset);
}

void StepMemory::write(const graph::StepView& step) {
  const auto copy = [this](std::span<const std::int32_t> from, const BufferPart& to) {
    HEARTH_ASSERT(from.size_bytes() <= to.bytes);
    std::ranges::copy(from, host_array<std::int32_t>(to));
  };
  auto* tokens = host_array<std::int32_t>(parts_.tokens);
  std::ranges::transform(step.tokens, tokens,
                         [](TokenId token) { return static_cast<std::int32_t>(token); });
  for (std::size_t row = 0; row < step.token_sources.size(); ++row) {
    const std::int32_t source = step.token_sources[row];
    tokens[row] = source < 0 ? tokens[row] : -1 - source;  // as kernels/embed.h has it
  }
  copy(step.positions, parts_.positions);
  copy(step.sequences, parts_.sequences);
  copy(step.logit_rows, parts_.logit_rows);
  copy(step.row_sources, parts_.row_sources);
  copy(step.row_targets, parts_.row_targets);
  write_row_starts(step);
  if (!step.state_slots.empty()) {
    for (std::int64_t row = 0; row < step.n_rows(); ++row) {
      host_array<std::int32_t>(parts_.state_before)[row] =
          static_cast<std::int32_t>(step.state_before(row));
      host_array<std::int32_t>(parts_.state_after)[row] =
          static_cast<std::int32_t>(step.state_after(row));
    }
  }
  write_angles(step);
}

void StepMemory::write_row_starts(const graph::StepView& step) {
  auto* starts = host_array<std::uint32_t>(parts_.row_starts);
  std::uint32_t n_sequences = 0;
  for (std::size_t row = 0; row < step.sequences.size(); ++row) {
    if (row == 0 || step.sequences[row] != step.sequences[row - 1]) {
      starts[n_sequences++] = static_cast<std::uint32_t>(row);
    }
  }
  starts[n_sequences] = static_cast<std::uint32_t>(step.n_rows());
  auto* counts = host_array<std::uint32_t>(parts_.counts);
  counts[0] = static_cast<std::uint32_t>(step.n_rows());
  counts[1] = static_cast<std::uint32_t>(step.n_logit_rows());
  counts[2] = n_sequences;
}

void StepMemory::write_angles(const graph::StepView& step) {
  for (const auto& [params, table, part] : angles_) {
    auto* row = host_array<float>(part);
    for (const std::int32_t position : step.positions) {
      table.angles(position, row, row + params.n_rot / 2);
      row += params.n_rot;
    }
  }
}

}  // namespace hearth::backend::gpu
