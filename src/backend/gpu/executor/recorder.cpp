#include "backend/gpu/executor/recorder.h"

#include <algorithm>
#include <string>
#include <variant>

#include "backend/gpu/kernels/weight_tiles.h"
#include "base/checked.h"
#include "base/fail.h"
#include "quant/registry.h"

namespace hearth::backend::gpu {
namespace {

/// Finds the function for a kind of launch.
struct RecordLaunch {
  Recorder& recorder;

  Result<void> operator()(const plan::OpLaunch& each) const { return record_op(each, recorder); }
  Result<void> operator()(const plan::Projection& each) const {
    return record_projection(each, recorder);
  }
  Result<void> operator()(const plan::AttentionBlock& each) const {
    return record_attention_block(each, nullptr, recorder);
  }
  Result<void> operator()(const plan::NormAdd& each) const {
    return record_norm_add(each, recorder);
  }
  Result<void> operator()(const plan::ExpertGate& each) const {
    return record_expert_gate(each, recorder);
  }
  Result<void> operator()(const plan::ExpertDown& each) const {
    return record_expert_down(each, recorder);
  }
};

}  // namespace

Result<std::size_t> Recorder::record(std::span<const plan::Launch> launches) {
  scratch_used_ = 0;
  barrier();
  HEARTH_ASSIGN(std::size_t n_recorded, record_merged(launches, *this));
  if (n_recorded == 0) {
    HEARTH_TRY(std::visit(RecordLaunch{*this}, launches.front()));
    n_recorded = 1;
  }
  largest_scratch_ = std::max(largest_scratch_, scratch_used_);
  return n_recorded;
}

BufferPart Recorder::value(graph::ValueId value) const {
  const auto& place = context_.plan.placements[graph::index(value)];
  const auto& [axis, rows, features] = desc(value);
  return {context_.arena.buffer, context_.arena.offset + static_cast<std::uint64_t>(place.offset),
          static_cast<std::uint64_t>(rows * features) * sizeof(float)};
}

BufferPart Recorder::scratch(std::int64_t bytes) {
  const BufferPart part{context_.scratch.buffer,
                        context_.scratch.offset + static_cast<std::uint64_t>(scratch_used_),
                        static_cast<std::uint64_t>(bytes)};
  scratch_used_ = round_up(scratch_used_ + bytes, buffer_alignment);
  return part;
}

std::uint32_t Recorder::expert_rows(graph::WeightId id) const {
  const std::int64_t rows = host_weight(id).tensor.shape[1];
  return static_cast<std::uint32_t>(is_tiled(id) ? round_up(rows, TILE_ROWS) : rows);
}

Result<KernelId> kernel_for(std::string_view prefix, DType type, std::string_view what) {
  const std::string_view type_name = quant::info(type).name;
  std::string name(prefix);
  for (const char c : type_name) {
    name += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  if (const auto kernel = find_kernel(name)) {
    return *kernel;
  }
  return fail(ErrorCode::unsupported, "{}: no GPU kernel for type {}", what, type_name);
}

RopePairs rope_pairs(const graph::RopeParams& params) {
  const auto n_rot = static_cast<u32>(params.n_rot);
  return params.pairing == graph::RopePairing::adjacent ? RopePairs{n_rot, 2, 1}
                                                        : RopePairs{n_rot, 1, n_rot / 2};
}

}  // namespace hearth::backend::gpu
