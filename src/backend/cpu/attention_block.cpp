/// AttentionBlock: first the rows are shared out to norm and rotate q and k and to store k and v.
/// After a barrier, each thread takes the next task when it has done one. With many rows a task is
/// a tile of consecutive rows of a sequence and a key/value head, which balances the causal
/// triangle. With few rows and long contexts that leaves threads idle, so a task is one partition
/// of keys of such a pair, and a second barrier precedes the folding of partials. Both give the
/// same bits: partitions are part of the canonical arithmetic.

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
        q_columns_(
            block.q_columns.value_or(graph::ColumnPattern{params_.head_dim, 0, params_.head_dim})),
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
    const Division division = divide(worker, run.step);
    if (division.splits_keys) {
      attend_partitions(worker, run, division.tile_rows);
      worker.wait_for_all();
      fold_rows(worker, run, division.tile_rows);
    } else {
      attend_tiles(worker, run, division.tile_rows);
    }
  }

  [[nodiscard]] std::int64_t shared_bytes() const override {
    return query_bytes() +
           split_rows() * max_partitions_ * params_.n_heads * record() * float_bytes;
  }
  [[nodiscard]] std::int64_t private_bytes() const override {
    const std::int64_t partials = 2 * max_attend_rows(params_) * group() * record() * float_bytes;
    return std::max(attend_scratch_bytes(params_) + partials, params_.head_dim * 2 * float_bytes);
  }

 private:
  static constexpr auto float_bytes = static_cast<std::int64_t>(sizeof(float));
  /// More rows than this keep the threads busy by themselves.
  static constexpr std::int64_t max_split_rows = 8;

  /// Partitions [first, end) of keys.
  struct Partitions {
    std::int64_t first;
    std::int64_t end;

    [[nodiscard]] std::int64_t n() const { return end - first; }
  };
  /// Consecutive rows of one sequence, with the partitions that any of them sees.
  struct Tile {
    std::int64_t first_row;
    std::int64_t n_rows;
    Partitions seen;
  };
  /// How a step becomes tasks.
  struct Division {
    std::int64_t tile_rows;  // at most
    bool splits_keys;
  };

  static std::optional<HeadNorm> head_norm(const std::optional<graph::RmsNorm>& norm,
                                           const BindContext& context) {
    return norm ? std::optional(HeadNorm{graph::f32_data(context.weights, norm->weight), norm->eps})
                : std::nullopt;
  }

  [[nodiscard]] std::int64_t group() const { return params_.n_heads / params_.n_kv_heads; }
  [[nodiscard]] std::int64_t record() const { return partial_floats(params_.head_dim); }
  [[nodiscard]] std::int64_t query_bytes() const {
    return round_up(q_.desc.rows * output_.desc.features * float_bytes, 64);
  }
  [[nodiscard]] std::int64_t split_rows() const {
    return max_partitions_ > 1 ? std::min(q_.desc.rows, max_split_rows) : 0;
  }

  [[nodiscard]] Partitions partitions(const graph::StepView& step, std::int64_t row) const {
    const std::int64_t position = step.positions[static_cast<std::size_t>(row)];
    return {params_.first_key(position) / graph::attention_partition,
            position / graph::attention_partition + 1};
  }

  template <class F>
  void for_each_tile(const graph::StepView& step, std::int64_t max_rows, F&& f) const {
    for (std::int64_t row = 0; row < step.n_rows();) {
      std::int64_t n = 1;
      while (n < max_rows && row + n < step.n_rows() && follows(step, row + n)) {
        ++n;
      }
      f(Tile{row, n, {partitions(step, row).first, partitions(step, row + n - 1).end}});
      row += n;
    }
  }
  /// Whether a row is the next of the same sequence as the row before it.
  static bool follows(const graph::StepView& step, std::int64_t row) {
    const auto i = static_cast<std::size_t>(row);
    return step.sequences[i] == step.sequences[i - 1] &&
           step.positions[i] == step.positions[i - 1] + 1;
  }

  /// Keys are split where that leaves less to the thread with the most; otherwise tiles shrink
  /// until there are a few for every thread.
  [[nodiscard]] Division divide(const Worker& worker, const graph::StepView& step) const {
    std::int64_t tile_rows = max_attend_rows(params_);
    if (step.n_rows() <= split_rows()) {
      std::int64_t n_tiles = 0;
      std::int64_t total = 0;
      std::int64_t longest = 0;
      for_each_tile(step, tile_rows, [&](const Tile& tile) {
        ++n_tiles;
        total += tile.seen.n();
        longest = std::max(longest, tile.seen.n());
      });
      if (ceil_div(total * params_.n_kv_heads, worker.count) <
          ceil_div(n_tiles * params_.n_kv_heads, worker.count) * longest) {
        return {tile_rows, true};
      }
    }
    constexpr std::int64_t tasks_each = 4;
    while (tile_rows > 1 &&
           step.n_rows() * params_.n_kv_heads < tasks_each * worker.count * tile_rows) {
      tile_rows /= 2;
    }
    return {tile_rows, false};
  }

  /// Shared: [kv heads, rows, heads of the group, head_dim], so that the queries of a tile that
  /// meet the same keys are neighbours.
  [[nodiscard]] float* queries(const RunContext& run, std::int64_t row,
                               std::int64_t kv_head) const {
    return as_array<float>(run.shared_scratch) +
           (kv_head * run.step.n_rows() + row) * group() * params_.head_dim;
  }

  /// Shared, when keys are split: [partitions of all tiles, kv heads, rows, heads of the group] of
  /// partials; the tiles before have taken n_before partials.
  [[nodiscard]] float* tile_partials(const RunContext& run, std::int64_t n_before, const Tile& tile,
                                     std::int64_t partition, std::int64_t kv_head) const {
    const std::int64_t index = (partition - tile.seen.first) * params_.n_kv_heads + kv_head;
    return as_array<float>(run.shared_scratch + query_bytes()) +
           (n_before + index * tile.n_rows * group()) * record();
  }
  [[nodiscard]] std::int64_t n_partials(const Tile& tile) const {
    return tile.seen.n() * tile.n_rows * params_.n_heads;
  }

  void attend(const Worker& worker, const RunContext& run, const Tile& tile, std::int64_t kv_head,
              std::int64_t partition, float* partials) const {
    kernels_.attend({.kv = &run.kv,
                     .params = &params_,
                     .block_table = run.step.block_table(tile.first_row),
                     .position = run.step.positions[static_cast<std::size_t>(tile.first_row)],
                     .n_rows = tile.n_rows,
                     .kv_head = kv_head,
                     .partition = partition,
                     .q = queries(run, tile.first_row, kv_head),
                     .partials = partials,
                     .scratch = run.scratch_of(worker)});
  }

  /// Folds the partials of a row's heads, `next` behind `total`.
  void fold(const float* next, float* total) const {
    for (std::int64_t at = 0; at < group() * record(); at += record()) {
      kernels_.fold_partial(params_.head_dim, next + at, total + at);
    }
  }
  void finish(const RunContext& run, const float* total, std::int64_t row,
              std::int64_t kv_head) const {
    float* out =
        output_.data(run) + row * output_.desc.features + kv_head * group() * params_.head_dim;
    for (std::int64_t head = 0; head < group(); ++head) {
      kernels_.finish_partial(params_.head_dim, total + head * record(),
                              out + head * params_.head_dim);
    }
  }

  /// Tasks of one head are neighbours, so that threads read the same keys at about the same time.
  void attend_tiles(const Worker& worker, const RunContext& run, std::int64_t tile_rows) const {
    std::int64_t task = 0;
    std::int64_t own = worker.index;
    for (std::int64_t kv_head = 0; kv_head < params_.n_kv_heads; ++kv_head) {
      for_each_tile(run.step, tile_rows, [&](const Tile& tile) {
        if (task++ == own) {
          attend_tile(worker, run, tile, kv_head);
          own = worker.next_task();
        }
      });
    }
  }

  void attend_tile(const Worker& worker, const RunContext& run, const Tile& tile,
                   std::int64_t kv_head) const {
    const std::int64_t row_floats = group() * record();
    auto* totals = as_array<float>(run.scratch_of(worker) + attend_scratch_bytes(params_));
    float* partials = totals + max_attend_rows(params_) * row_floats;
    attend(worker, run, tile, kv_head, tile.seen.first, totals);
    for (std::int64_t partition = tile.seen.first + 1; partition < tile.seen.end; ++partition) {
      attend(worker, run, tile, kv_head, partition, partials);
      for (std::int64_t i = 0; i < tile.n_rows; ++i) {
        const Partitions seen = partitions(run.step, tile.first_row + i);
        if (partition == seen.first) {
          std::copy_n(partials + i * row_floats, row_floats, totals + i * row_floats);
        } else if (partition < seen.end) {
          fold(partials + i * row_floats, totals + i * row_floats);
        }
      }
    }
    for (std::int64_t i = 0; i < tile.n_rows; ++i) {
      finish(run, totals + i * row_floats, tile.first_row + i, kv_head);
    }
  }

  void attend_partitions(const Worker& worker, const RunContext& run,
                         std::int64_t tile_rows) const {
    std::int64_t task = 0;
    std::int64_t own = worker.index;
    std::int64_t n_before = 0;
    for_each_tile(run.step, tile_rows, [&](const Tile& tile) {
      for (std::int64_t partition = tile.seen.first; partition < tile.seen.end; ++partition) {
        for (std::int64_t kv_head = 0; kv_head < params_.n_kv_heads; ++kv_head) {
          if (task++ == own) {
            attend(worker, run, tile, kv_head, partition,
                   tile_partials(run, n_before, tile, partition, kv_head));
            own = worker.next_task();
          }
        }
      }
      n_before += n_partials(tile);
    });
  }

  void fold_rows(const Worker& worker, const RunContext& run, std::int64_t tile_rows) const {
    std::int64_t task = 0;
    std::int64_t n_before = 0;
    for_each_tile(run.step, tile_rows, [&](const Tile& tile) {
      for (std::int64_t i = 0; i < tile.n_rows; ++i) {
        const Partitions seen = partitions(run.step, tile.first_row + i);
        for (std::int64_t kv_head = 0; kv_head < params_.n_kv_heads; ++kv_head) {
          if (task++ % worker.count != worker.index) {
            continue;
          }
          const auto of_row = [&](std::int64_t partition) {
            return tile_partials(run, n_before, tile, partition, kv_head) + i * group() * record();
          };
          for (std::int64_t partition = seen.first + 1; partition < seen.end; ++partition) {
            fold(of_row(partition), of_row(seen.first));
          }
          finish(run, of_row(seen.first), tile.first_row + i, kv_head);
        }
      }
      n_before += n_partials(tile);
    });
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
    for (std::int64_t head = 0; head < params_.n_heads; ++head) {
      position_head(q_norm_, cosines, sines, q + head * q_columns_.period + q_columns_.start,
                    queries(run, row, head / group()) + head % group() * head_dim);
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
  std::int64_t max_partitions_;     // of the longest context that the cache holds
  graph::ColumnPattern q_columns_;  // where the heads of q lie
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
