#pragma once
/// The inner loops of the CPU backend, one set per instruction set. All sets compute the same bits.

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "backend/cpu/activation_step.h"
#include "backend/cpu/tile_fields.h"
#include "base/result.h"
#include "graph/kv_cache.h"
#include "graph/ops/activation.h"
#include "graph/ops/attention.h"
#include "graph/ops/rope.h"
#include "tensor/dtype.h"

namespace hearth::backend::cpu {

/// Activations of some rows, in the form that a weight format multiplies with; the other is null.
struct ActivationRows {
  const float* values = nullptr;  // [rows, n_in]
  /// [n_in / 256, rounded up][rows], and step_slack more of any content.
  const ActivationStep* steps = nullptr;
};

/// out[row, o] = weight row o . x[row], for n_out consecutive weight rows.
struct MatmulTask {
  const std::byte* weights;  // native rows, or the tiles of whole panels
  std::int64_t weight_row_bytes;
  bool is_tiled;
  std::int64_t n_in;
  std::int64_t n_out;
  ActivationRows x;
  std::int64_t n_rows;
  float* out;               // [n_rows, ...], the first output of row 0
  std::int64_t out_stride;  // floats from one row to the next
  std::byte* scratch;       // matmul_scratch_bytes(), private to the thread
};
using MatmulKernel = void (*)(const MatmulTask& task);

/// Native rows, 1 to 16 of them, to the tiles of a panel; rows that are missing repeat the last.
using InterleaveKernel = void (*)(const std::byte* rows, std::int64_t row_bytes,
                                  std::int64_t n_rows, std::int64_t n_in, std::byte* tiles);

/// Attention of a few rows of one sequence over the keys of one partition, for the query heads that
/// share one key/value head.
struct AttendTask {
  const graph::HostKvCache* kv;
  const graph::AttentionParams* params;
  const std::int32_t* block_table;
  std::int64_t position;  // of the first row; the others follow
  std::int64_t n_rows;    // up to max_attend_rows(params)
  std::int64_t kv_head;
  std::int64_t partition;  // at least one row sees a key of it
  const float* q;          // [rows, heads per kv head, head_dim]
  float* partials;         // the same, of partial_floats(head_dim); no use for rows without keys
  std::byte* scratch;      // attend_scratch_bytes(params), private to the thread
};

/// What one token brings to a strip of a head's memory, as in graph/ops/delta_rule.h.
struct DeltaToken {
  const float* q;  // [key_dim], normalised as k is
  const float* k;
  const float* v;  // [16]
  float decay;
  float beta;
  float* out;  // [16]
};

/// Some tokens of a strip, one after another.
struct DeltaTask {
  float* memory;  // [key_dim][16]
  std::int64_t key_dim;
  const DeltaToken* tokens;
  std::int64_t n_tokens;  // at least 1
};

/// One token of up to conv_block neighbouring channels, as in graph/ops/causal_conv.h.
struct ConvTask {
  std::int64_t n_channels;
  std::int64_t taps;
  const float* weights;  // [taps][conv_block]
  float* ring;           // [taps - 1][ring_stride], from the first of these channels on
  std::int64_t ring_stride;
  std::int64_t position;
  const float* x;  // [n_channels]
  float* out;
};
inline constexpr std::int64_t conv_block = 64;

/// From here on unpacking weights for tile instructions pays.
inline constexpr std::int64_t min_many_rows = 64;
/// Panels of sixteen weight rows for which a kernel may read the activations once, and of them how
/// many it may have unpacked at the same time.
inline constexpr std::int64_t max_panels_together = 8;
inline constexpr std::int64_t panels_at_once = 2;

/// The keys [first, last] of a partition that a query sees; none when last < first.
struct KeyRange {
  std::int64_t first;
  std::int64_t last;

  KeyRange(const graph::AttentionParams& params, std::int64_t position, std::int64_t partition)
      : first(std::max(partition * graph::attention_partition, params.first_key(position))),
        last(std::min((partition + 1) * graph::attention_partition - 1, position)) {}
};

/// Where the softmax over some keys, not yet normalised, keeps its parts: values [value_stride],
/// then the maximum of the scores and the sum of the weights.
constexpr std::int64_t partial_maximum(std::int64_t head_dim) {
  return graph::value_stride(head_dim);
}
constexpr std::int64_t partial_sum(std::int64_t head_dim) {
  return partial_maximum(head_dim) + 1;
}
constexpr std::int64_t partial_floats(std::int64_t head_dim) {
  return partial_maximum(head_dim) + 16;
}

struct KernelSet {
  std::string_view name;
  /// By DType number; null where the type has no kernel, or no tiles.
  std::vector<MatmulKernel> matmul;
  std::vector<MatmulKernel> matmul_many;  // for min_many_rows activation rows; null: as few
  std::vector<InterleaveKernel> interleave;
  /// Panels for which those for many rows read the activations once, up to max_panels_together.
  std::int64_t panels_together = 1;
  /// quant::quantize_activations of n values, in steps that lie `stride` apart.
  void (*quantize)(const float* x, std::int64_t n, int block, ActivationStep* steps,
                   std::int64_t stride);
  void (*attend)(const AttendTask& task);
  /// Folds the partial of the next partition into that of the earlier ones.
  void (*fold_partial)(std::int64_t head_dim, const float* next, float* total);
  /// out = values / sum
  void (*finish_partial)(std::int64_t head_dim, const float* total, float* out);
  /// graph::RopeTable::angles and graph::rotate_head.
  void (*rope_angles)(const graph::RopeTable& table, std::int32_t position, float* cosines,
                      float* sines);
  void (*rotate_head)(const graph::RopeParams& params, const float* cosines, const float* sines,
                      const float* in, float* out);
  /// graph::rms_norm_run.
  void (*rms_norm)(const float* x, const float* weight, std::int64_t n, float eps, float* y);
  /// out = activation(gate) * up, n values; out may be gate or up.
  void (*gate)(graph::ActivationKind kind, const float* gate, const float* up, std::int64_t n,
               float* out);
  /// graph::unit_vector.
  void (*unit_vector)(const float* x, std::int64_t n, float scale, float* y);
  void (*delta)(const DeltaTask& task);
  void (*conv)(const ConvTask& task);
  /// graph::route_row.
  void (*route)(const float* logits, std::int64_t n_experts, std::int64_t n_used,
                float* probabilities, float* routing);
  /// sum += weight * x by fused multiply-adds, n values.
  void (*add_scaled)(float weight, const float* x, std::int64_t n, float* sum);

  /// The kernel for n_rows activation rows; null where the type has none.
  [[nodiscard]] MatmulKernel matmul_for(DType dtype, std::int64_t n_rows) const {
    const auto i = static_cast<std::size_t>(dtype);
    return n_rows >= min_many_rows && matmul_many[i] != nullptr ? matmul_many[i] : matmul[i];
  }
};

/// Sets this machine can run, best first; the portable one is always last.
std::vector<KernelSet> supported_kernel_sets();
/// The best set, or the one that the environment variable HEARTH_CPU_KERNELS names.
/// Errors: invalid_argument when this machine has no set of that name.
Result<KernelSet> choose_kernel_set();

/// Scratch of a task of up to n_rows activation rows.
std::int64_t matmul_scratch_bytes(std::int64_t weight_row_bytes, std::int64_t n_in,
                                  std::int64_t n_rows);
/// Scratch of one panel: its native rows as tiles, the unpacked tiles of one step, the sums
/// [rows, 16].
constexpr std::int64_t native_panel_bytes(std::int64_t weight_row_bytes) {
  return round_up(weight_row_bytes * panel_rows, 64);
}
inline constexpr std::int64_t unpacked_bytes = 10240;
constexpr std::int64_t panel_sum_bytes(std::int64_t n_rows) {
  return (n_rows + step_slack) * panel_rows * std::int64_t{sizeof(float)};
}
/// Keys that are widened together, where the type of the cache is not multiplied directly.
inline constexpr std::int64_t attend_chunk = 64;
std::int64_t max_attend_rows(const graph::AttentionParams& params);
std::int64_t attend_scratch_bytes(const graph::AttentionParams& params);

}  // namespace hearth::backend::cpu
