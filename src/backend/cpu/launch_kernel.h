#pragma once
/// A launch bound to its kernels: what every thread of the pool runs between two barriers.

#include <algorithm>
#include <cstdint>
#include <memory>

#include "backend/cpu/kernels/kernel_set.h"
#include "backend/cpu/packed_weights.h"
#include "backend/cpu/thread_pool.h"
#include "base/checked.h"
#include "graph/caches.h"
#include "plan/plan.h"

namespace hearth::backend::cpu {

/// Memory and step data of one run.
struct RunContext {
  const graph::StepView& step;
  graph::HostKvCache& kv;
  graph::HostStateCache& states;
  graph::HostRowStore& rows;
  std::byte* arena;
  std::byte* shared_scratch;   // one for all threads
  std::byte* private_scratch;  // one per thread, private_bytes apart
  std::int64_t private_bytes;

  [[nodiscard]] std::byte* scratch_of(const Worker& worker) const {
    return private_scratch + worker.index * private_bytes;
  }
};

/// What a kernel needs to know of the plan to find its values.
class ValueMap {
 public:
  explicit ValueMap(const plan::Plan& plan) : plan_(plan) {}

  [[nodiscard]] const graph::ValueDesc& desc(graph::ValueId value) const {
    return plan_.values[graph::index(value)];
  }
  /// Byte offset in the arena.
  [[nodiscard]] std::int64_t offset(graph::ValueId value) const {
    return plan_.placements[graph::index(value)].offset;
  }

 private:
  const plan::Plan& plan_;
};

/// An activation as a launch sees it at run time.
struct ValueRef {
  ValueRef() = default;
  ValueRef(const ValueMap& values, graph::ValueId value)
      : desc(values.desc(value)), offset(values.offset(value)) {}

  [[nodiscard]] std::int64_t rows(const graph::StepView& step) const {
    return desc.axis == graph::RowAxis::batch ? step.n_rows() : step.n_logit_rows();
  }
  [[nodiscard]] float* data(const RunContext& run) const {
    return as_array<float>(run.arena + offset);
  }

  graph::ValueDesc desc;
  std::int64_t offset = 0;
};

/// Up to here every thread prepares the activations of all rows for itself, which is cheaper than a
/// barrier.
inline constexpr std::int64_t max_private_rows = 4;

/// Panels of n_out weight rows, each multiplied with n_rows activation rows, as pieces to share
/// out. A claim costs about as much as reading two kilobytes, and with many rows the reading of all
/// activations.
inline Pieces panel_pieces(const KernelSet& kernels, const Worker& worker, std::int64_t n_out,
                           std::int64_t row_bytes, std::int64_t n_rows) {
  constexpr std::int64_t min_claim_bytes = 64 << 10;
  constexpr std::int64_t claims_each = 4;
  const std::int64_t n_panels = ceil_div(n_out, panel_rows);
  const std::int64_t panel_bytes = std::max<std::int64_t>(1, panel_rows * row_bytes * n_rows);
  if (n_rows < min_many_rows) {
    return {n_panels, ceil_div(min_claim_bytes, panel_bytes)};
  }
  return {n_panels,
          std::clamp(n_panels / (claims_each * worker.count), panels_at_once,
                     std::max(panels_at_once, kernels.panels_together)),
          many_rows_share};
}

/// How many weight rows of each of two matrices that are gated a thread takes at a time: with many
/// activation rows, those that a kernel reads them once for.
inline std::int64_t weight_rows_together(const KernelSet& kernels, std::int64_t n_rows) {
  return n_rows < min_many_rows ? panel_rows : kernels.panels_together * panel_rows;
}

class LaunchKernel {
 public:
  virtual ~LaunchKernel() = default;

  /// Runs this thread's part. May use barriers inside; the caller puts one after it.
  virtual void run(const Worker& worker, const RunContext& run) const = 0;

  /// Scratch wanted: shared by all threads, and per thread.
  [[nodiscard]] virtual std::int64_t shared_bytes() const { return 0; }
  [[nodiscard]] virtual std::int64_t private_bytes() const { return 0; }
};

struct BindContext {
  const KernelSet& kernels;
  const graph::WeightTable& weights;
  PackedWeights& packed;
  ValueMap values;
  const graph::KvCacheDesc& kv;
};

/// Errors: unsupported when a weight's type has no kernel.
Result<std::unique_ptr<LaunchKernel>> bind_launch(const plan::Launch& launch,
                                                  const BindContext& context);

// One constructor per launch kind, each in the file of its name.
Result<std::unique_ptr<LaunchKernel>> bind_projection(const plan::Projection& projection,
                                                      const BindContext& context);
std::unique_ptr<LaunchKernel> bind_attention_block(const plan::AttentionBlock& block,
                                                   const BindContext& context);
std::unique_ptr<LaunchKernel> bind_norm_add(const plan::NormAdd& add, const BindContext& context);
Result<std::unique_ptr<LaunchKernel>> bind_expert_gate(const plan::ExpertGate& gate,
                                                       const BindContext& context);
Result<std::unique_ptr<LaunchKernel>> bind_expert_down(const plan::ExpertDown& down,
                                                       const BindContext& context);
std::unique_ptr<LaunchKernel> bind_causal_conv(const plan::OpLaunch& launch,
                                               const BindContext& context);
std::unique_ptr<LaunchKernel> bind_delta_rule(const plan::OpLaunch& launch,
                                              const BindContext& context);
std::unique_ptr<LaunchKernel> bind_router(const plan::OpLaunch& launch, const BindContext& context);
/// Any other op: runs its reference kernel.
std::unique_ptr<LaunchKernel> bind_op(const plan::OpLaunch& op, const BindContext& context);

}  // namespace hearth::backend::cpu
