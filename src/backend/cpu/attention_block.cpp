/// AttentionBlock: first the rows are shared out to norm and rotate q and k and to store k and v.
/// After a barrier, tasks are dealt round. With many rows a task is (row, key/value head), which
/// balances the causal triangle. With few rows and long contexts that leaves threads idle, so a
/// task is one partition of keys of such a pair, and a second barrier precedes the folding of
/// partials. Both give the same bits: partitions are part of the canonical arithmetic.

#include <algorithm>
#include <optional>
#include <utility>

#include "backend/cpu/launch_kernel.h"
#include "base/checked.h"

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
        max_partitions_(
            ceil_div(context.kv.n_blocks * graph::kv_block_tokens, graph::attention_partition)),
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
    const auto share = worker.share(run.step.n_rows());
    for (std::int64_t row = share.begin; row < share.end; ++row) {
      store_row(worker, run, row);
    }
    worker.wait_for_all();
    if (splits_keys(worker, run.step)) {
      attend_partitions(worker, run);
      worker.wait_for_all();
      fold_rows(worker, run);
    } else {
      attend_rows(worker, run);
    }
  }

  [[nodiscard]] std::int64_t shared_bytes() const override {
    return query_bytes() +
           split_rows() * max_partitions_ * params_.n_heads * record() * float_bytes;
  }
  [[nodiscard]] std::int64_t private_bytes() const override {
    const std::int64_t two_partials = 2 * group() * record() * float_bytes;
    return std::max(attend_scratch_bytes(params_) + two_partials,
                    params_.head_dim * 2 * float_bytes);
  }

 private:
  static constexpr auto float_bytes = static_cast<std::int64_t>(sizeof(float));
  /// More rows than this keep the threads busy by themselves.
  static constexpr std::int64_t max_split_rows = 8;

  /// The partitions that a row sees.
  struct Partitions {
    std::int64_t first;
    std::int64_t n;
  };

  static std::optional<HeadNorm> head_norm(const std::optional<graph::RmsNorm>& norm,
                                           const BindContext& context) {
    return norm ? std::optional(HeadNorm{graph::f32_data(context.weights, norm->weight), norm->eps})
                : std::nullopt;
  }

  [[nodiscard]] std::int64_t group() const { return params_.n_heads / params_.n_kv_heads; }
  [[nodiscard]] std::int64_t record() const { return partial_floats(params_.head_dim); }
  [[nodiscard]] std::int64_t query_bytes() const {
    return round_up(q_.desc.rows * q_.desc.features * float_bytes, 64);
  }
  [[nodiscard]] std::int64_t split_rows() const {
    return max_partitions_ > 1 ? std::min(q_.desc.rows, max_split_rows) : 0;
  }

  [[nodiscard]] Partitions partitions(const graph::StepView& step, std::int64_t row) const {
    const std::int64_t position = step.positions[static_cast<std::size_t>(row)];
    const std::int64_t first = params_.first_key(position) / graph::attention_partition;
    return {first, position / graph::attention_partition - first + 1};
  }

  /// Shared: [rows, n_heads * head_dim].
  [[nodiscard]] float* queries(const RunContext& run, std::int64_t row) const {
    return as_array<float>(run.shared_scratch) + row * q_.desc.features;
  }
  /// Shared: the partials of a head, [heads of the group, record()] for each partition of a row,
  /// counted from the first row of the step.
  [[nodiscard]] float* partials(const RunContext& run, std::int64_t partition,
                                std::int64_t kv_head) const {
    return as_array<float>(run.shared_scratch + query_bytes()) +
           (partition * params_.n_kv_heads + kv_head) * group() * record();
  }

  /// Whether the thread with the most partitions gets fewer of them when each is a task of its own.
  [[nodiscard]] bool splits_keys(const Worker& worker, const graph::StepView& step) const {
    if (step.n_rows() > split_rows()) {
      return false;
    }
    std::int64_t total = 0;
    std::int64_t longest = 0;
    for (std::int64_t row = 0; row < step.n_rows(); ++row) {
      const std::int64_t n = partitions(step, row).n;
      total += n;
      longest = std::max(longest, n);
    }
    const std::int64_t n_tasks = step.n_rows() * params_.n_kv_heads;
    return ceil_div(total * params_.n_kv_heads, worker.count) <
           ceil_div(n_tasks, worker.count) * longest;
  }

  void attend(const Worker& worker, const RunContext& run, std::int64_t row, std::int64_t kv_head,
              std::int64_t partition, float* partials) const {
    kernels_.attend({.kv = &run.kv,
                     .params = &params_,
                     .block_table = run.step.block_table(row),
                     .position = run.step.positions[static_cast<std::size_t>(row)],
                     .kv_head = kv_head,
                     .partition = partition,
                     .q = queries(run, row) + kv_head * group() * params_.head_dim,
                     .partials = partials,
                     .scratch = run.scratch_of(worker)});
  }

  /// Folds the partials of a group, `next` behind `total`.
  void fold(const float* next, float* total) const {
    for (std::int64_t at = 0; at < group() * record(); at += record()) {
      kernels_.fold_partial(params_.head_dim, next + at, total + at);
    }
  }
  void finish(const RunContext& run, const float* total, std::int64_t row,
              std::int64_t kv_head) const {
    float* out = output_.data(run) + row * q_.desc.features + kv_head * group() * params_.head_dim;
    for (std::int64_t head = 0; head < group(); ++head) {
      kernels_.finish_partial(params_.head_dim, total + head * record(),
                              out + head * params_.head_dim);
    }
  }

  void attend_rows(const Worker& worker, const RunContext& run) const {
    auto* total = as_array<float>(run.scratch_of(worker) + attend_scratch_bytes(params_));
    float* next = total + group() * record();
    for (std::int64_t task = worker.index; task < run.step.n_rows() * params_.n_kv_heads;
         task += worker.count) {
      const std::int64_t row = task / params_.n_kv_heads;
      const std::int64_t kv_head = task % params_.n_kv_heads;
      const Partitions seen = partitions(run.step, row);
      attend(worker, run, row, kv_head, seen.first, total);
      for (std::int64_t i = 1; i < seen.n; ++i) {
        attend(worker, run, row, kv_head, seen.first + i, next);
        fold(next, total);
      }
      finish(run, total, row, kv_head);
    }
  }

  void attend_partitions(const Worker& worker, const RunContext& run) const {
    std::int64_t n_before = 0;  // partitions of earlier rows
    for (std::int64_t row = 0; row < run.step.n_rows(); ++row) {
      const Partitions seen = partitions(run.step, row);
      for (std::int64_t i = 0; i < seen.n; ++i) {
        for (std::int64_t kv_head = 0; kv_head < params_.n_kv_heads; ++kv_head) {
          if (((n_before + i) * params_.n_kv_heads + kv_head) % worker.count == worker.index) {
            attend(worker, run, row, kv_head, seen.first + i, partials(run, n_before + i, kv_head));
          }
        }
      }
      n_before += seen.n;
    }
  }

  void fold_rows(const Worker& worker, const RunContext& run) const {
    std::int64_t n_before = 0;
    for (std::int64_t row = 0; row < run.step.n_rows(); ++row) {
      const Partitions seen = partitions(run.step, row);
      for (std::int64_t kv_head = 0; kv_head < params_.n_kv_heads; ++kv_head) {
        if ((row * params_.n_kv_heads + kv_head) % worker.count == worker.index) {
          float* total = partials(run, n_before, kv_head);
          for (std::int64_t i = 1; i < seen.n; ++i) {
            fold(partials(run, n_before + i, kv_head), total);
          }
          finish(run, total, row, kv_head);
        }
      }
      n_before += seen.n;
    }
  }

  void store_row(const Worker& worker, const RunContext& run, std::int64_t row) const {
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
      position_head(q_norm_, cosines, sines, q + start, queries(run, row) + start);
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
  std::int64_t max_partitions_;  // of the longest context that the cache holds
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
