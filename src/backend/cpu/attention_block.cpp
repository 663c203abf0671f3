/// AttentionBlock: first the rows are shared out to norm and rotate q and k and to store k and v;
/// then, after a barrier, (row, key/value head) tasks are dealt round, which balances the causal
/// triangle.

#include <algorithm>
#include <optional>
#include <utility>

#include "backend/cpu/launch_kernel.h"

namespace hearth::backend::cpu {
namespace {

struct HeadNorm {
  const float* weight;  // [head_dim]
  float eps;
};

class AttentionBlockKernel final : public LaunchKernel {
 public:
  AttentionBlockKernel(const plan::AttentionBlock& block, const BindContext& context)
      : kernels_(context.kernels),
        params_(block.attention),
        q_(context.values, block.q),
        k_(context.values, block.k),
        v_(context.values, block.v),
        output_(context.values, block.output),
        q_norm_(head_norm(block.q_norm, context)),
        k_norm_(head_norm(block.k_norm, context)) {
    if (block.rope) {
      rope_.emplace(*block.rope, graph::RopeTable(*block.rope, context.weights));
    }
  }

  void run(const Worker& worker, const RunContext& run) const override {
    const std::int64_t n_rows = run.step.n_rows();
    auto* queries = as_array<float>(run.shared_scratch);  // [rows, n_heads * head_dim]
    const auto share = worker.share(n_rows);
    for (std::int64_t row = share.begin; row < share.end; ++row) {
      store_row(worker, run, row, queries);
    }
    worker.wait_for_all();

    const std::int64_t group_features = params_.n_heads / params_.n_kv_heads * params_.head_dim;
    for (std::int64_t task = worker.index; task < n_rows * params_.n_kv_heads;
         task += worker.count) {
      const std::int64_t row = task / params_.n_kv_heads;
      const std::int64_t head = task % params_.n_kv_heads;
      const std::int64_t at = row * q_.desc.features + head * group_features;
      kernels_.attend({.kv = &run.kv,
                       .params = &params_,
                       .block_table = run.step.block_table(row),
                       .position = run.step.positions[static_cast<std::size_t>(row)],
                       .kv_head = head,
                       .q = queries + at,
                       .out = output_.data(run) + at,
                       .scratch = run.scratch_of(worker)});
    }
  }

  [[nodiscard]] std::int64_t shared_bytes() const override {
    return q_.desc.rows * q_.desc.features * static_cast<std::int64_t>(sizeof(float));
  }
  [[nodiscard]] std::int64_t private_bytes() const override {
    const auto angles = params_.head_dim * 2 * static_cast<std::int64_t>(sizeof(float));
    return std::max(attend_scratch_bytes(params_), angles);
  }

 private:
  static std::optional<HeadNorm> head_norm(const std::optional<graph::RmsNorm>& norm,
                                           const BindContext& context) {
    return norm ? std::optional(HeadNorm{graph::f32_data(context.weights, norm->weight), norm->eps})
                : std::nullopt;
  }

  void store_row(const Worker& worker, const RunContext& run, std::int64_t row,
                 float* queries) const {
    const std::int32_t position = run.step.positions[static_cast<std::size_t>(row)];
    auto* cosines = as_array<float>(run.scratch_of(worker));
    float* sines = cosines + params_.head_dim / 2;
    float* key = sines + params_.head_dim / 2;
    if (rope_) {
      kernels_.rope_angles(rope_->table, position, cosines, sines);
    }
    const std::int64_t head_dim = params_.head_dim;
    const float* q = q_.data(run) + row * q_.desc.features;
    for (std::int64_t start = 0; start < q_.desc.features; start += head_dim) {
      position_head(q_norm_, cosines, sines, q + start, queries + row * q_.desc.features + start);
    }
    const float* k = k_.data(run) + row * k_.desc.features;
    const float* v = v_.data(run) + row * v_.desc.features;
    for (std::int64_t head = 0; head < params_.n_kv_heads; ++head) {
      position_head(k_norm_, cosines, sines, k + head * head_dim, key);
      run.kv.write(static_cast<std::size_t>(params_.layer), run.step.block_table(row), position,
                   head, key, v + head * head_dim);
    }
  }

  /// Norm and rotation of one head.
  void position_head(const std::optional<HeadNorm>& norm, const float* cosines, const float* sines,
                     const float* in, float* out) const {
    if (norm) {
      kernels_.rms_norm(in, norm->weight, params_.head_dim, norm->eps, out);
      in = out;
    }
    if (rope_) {
      kernels_.rotate_head(rope_->params, cosines, sines, in, out);
    } else if (!norm) {
      std::copy_n(in, params_.head_dim, out);
    }
  }

  struct BoundRope {
    BoundRope(const graph::RopeParams& rope_params, graph::RopeTable rope_table)
        : params(rope_params), table(std::move(rope_table)) {}
    graph::RopeParams params;
    graph::RopeTable table;
  };

  const KernelSet& kernels_;
  graph::AttentionParams params_;
  ValueRef q_, k_, v_, output_;
  std::optional<HeadNorm> q_norm_, k_norm_;
  std::optional<BoundRope> rope_;
};

}  // namespace

std::unique_ptr<LaunchKernel> bind_attention_block(const plan::AttentionBlock& block,
                                                   const BindContext& context) {
  return std::make_unique<AttentionBlockKernel>(block, context);
}

}  // namespace hearth::backend::cpu
