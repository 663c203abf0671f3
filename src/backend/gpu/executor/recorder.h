#pragma once
/// How launches of a plan become commands of a device.

#include <cstdint>
#include <span>
#include <string_view>

#include "backend/gpu/executor/block_tables.h"
#include "backend/gpu/executor/device_caches.h"
#include "backend/gpu/executor/device_weights.h"
#include "backend/gpu/executor/step_memory.h"
#include "backend/gpu/host/command_list.h"
#include "backend/gpu/kernels/rope.h"
#include "plan/plan.h"

namespace hearth::backend::gpu {

/// What a plan is recorded with.
struct RecordContext {
  const plan::Plan& plan;
  const Capabilities& device;
  const graph::WeightTable& weights;
  const DeviceWeights& device_weights;
  const DeviceCaches& caches;
  const BlockTables& tables;
  const StepMemory& step;
  BufferPart arena;    // of plan.cost.arena_bytes
  BufferPart scratch;  // memory within a launch
  BufferPart chosen;   // columns that argmax chose in the step before, then in this one
};

/// Records one launch after another: finds buffers, shares out scratch memory, adds commands.
class Recorder {
 public:
  Recorder(const RecordContext& context, CommandList& list) : context_(context), list_(list) {}

  /// Appends the commands of the first launch, behind a barrier, or of several that a kernel takes
  /// as one; returns how many. Errors: unsupported, which names what has no kernel.
  Result<std::size_t> record(std::span<const plan::Launch> launches);

  [[nodiscard]] const RecordContext& context() const { return context_; }
  [[nodiscard]] const Capabilities& device() const { return context_.device; }
  [[nodiscard]] const StepParts& step() const { return context_.step.parts(); }

  [[nodiscard]] const graph::ValueDesc& desc(graph::ValueId value) const {
    return context_.plan.values[graph::index(value)];
  }
  [[nodiscard]] std::uint32_t rows(graph::ValueId value) const {
    return static_cast<std::uint32_t>(desc(value).rows);
  }
  [[nodiscard]] std::uint32_t features(graph::ValueId value) const {
    return static_cast<std::uint32_t>(desc(value).features);
  }
  /// Which of the step's counts is the number of the value's rows.
  [[nodiscard]] std::uint32_t axis(graph::ValueId value) const {
    return desc(value).axis == graph::RowAxis::batch ? 0 : 1;
  }
  [[nodiscard]] BufferPart value(graph::ValueId value) const;
  [[nodiscard]] BufferPart weight(graph::WeightId id) const {
    return context_.device_weights.part(id);
  }
  /// Whether it lies in tiles (kernels/weight_tiles.h).
  [[nodiscard]] bool is_tiled(graph::WeightId id) const {
    return context_.device_weights.is_tiled(id);
  }
  /// Rows from one expert's matrix to the next.
  [[nodiscard]] std::uint32_t expert_rows(graph::WeightId id) const;
  [[nodiscard]] const graph::Weight& host_weight(graph::WeightId id) const {
    return context_.weights[graph::index(id)];
  }
  /// Stands for an input that parameters say is absent.
  [[nodiscard]] BufferPart absent() const { return step().counts; }
  /// Memory until the end of the launch, aligned to 256 bytes.
  BufferPart scratch(std::int64_t bytes);

  template <class Params>
  void dispatch(KernelId kernel, std::vector<BufferPart> buffers, const Params& params, Dim3 grid,
                std::uint32_t threads) {
    list_.dispatch(kernel, std::move(buffers), params, grid, {threads});
  }
  void barrier() { list_.barrier(); }

  /// Bytes of scratch memory that the largest launch so far has asked for.
  [[nodiscard]] std::int64_t scratch_bytes() const { return largest_scratch_; }

 private:
  const RecordContext& context_;
  CommandList& list_;
  std::int64_t scratch_used_ = 0;  // by this launch
  std::int64_t largest_scratch_ = 0;
};

/// The kernel of a family for the type of a weight or a cache: `prefix` and the type's name.
/// Errors: unsupported, which names the type and `what` has it.
Result<KernelId> kernel_for(std::string_view prefix, DType type, std::string_view what);

/// How a rotation pairs the elements of a head.
RopePairs rope_pairs(const graph::RopeParams& params);

/// Steps of so many rows are taken for prompts, whose kernels share what neighbouring rows have in
/// common; fewer may well be rows of as many sequences, and do not keep those busy.
inline constexpr std::uint32_t min_prompt_rows = 65;

/// Launches that become one, at most.
inline constexpr std::size_t max_merged_launches = 5;

/// Whether the value passes from one launch to another and is nothing else.
[[nodiscard]] bool has_one_reader(graph::ValueId value, const Recorder& recorder);

/// Records the first launches as one where there is a kernel for that, and returns how many; 0 if
/// there is none.
Result<std::size_t> record_merged(std::span<const plan::Launch> launches, Recorder& recorder);

/// A convolution of a projection's first part, and what comes of it.
struct ConvolvedPart {
  const graph::CausalConv& op;
  graph::ValueId output;
};

// One function per kind of launch, each in the file of its name.
/// `conv`: if the projection can do it (convolves); its first part is nowhere written then.
Result<void> record_projection(const plan::Projection& projection, Recorder& recorder,
                               const ConvolvedPart* conv = nullptr);
/// `gate`: of what comes out, if record_attention_block may apply it (applies_gate).
Result<void> record_attention_block(const plan::AttentionBlock& block, const plan::Gate* gate,
                                    Recorder& recorder);
Result<void> record_expert_gate(const plan::ExpertGate& gate, Recorder& recorder);
Result<void> record_expert_down(const plan::ExpertDown& down, Recorder& recorder);
/// The choice of experts, what they do and the projection in front of both, where they take columns
/// (executor/columns.h) or those of a prompt tiles, with what these have in common prepared once.
/// Returns how many launches that was, 0 for others.
Result<std::size_t> record_routed_experts(std::span<const plan::Launch> launches,
                                          Recorder& recorder);
Result<void> record_norm_add(const plan::NormAdd& add, Recorder& recorder);
Result<void> record_op(const plan::OpLaunch& launch, Recorder& recorder);

/// Whether a projection can also do the convolution of its first part.
[[nodiscard]] bool convolves(const plan::Projection& projection, const graph::CausalConv& conv,
                             const Recorder& recorder);
/// Whether an attention block can multiply what comes out by a gate.
[[nodiscard]] bool applies_gate(const plan::AttentionBlock& block, const plan::Gate& gate,
                                const Recorder& recorder);
/// Whether a recurrent layer can norm each head of what comes out and multiply it by a gate.
[[nodiscard]] bool applies_norm(const graph::DeltaRule& delta, const plan::OpLaunch& launch,
                                const graph::RmsNorm& norm, const plan::Gate& gate,
                                const Recorder& recorder);
/// Records it with both.
void record_normed_delta_rule(const graph::DeltaRule& delta, const plan::OpLaunch& launch,
                              const graph::RmsNorm& norm, const plan::Gate& gate,
                              Recorder& recorder);

}  // namespace hearth::backend::gpu
