#pragma once
/// What an executor runs: launches. One launch is one barrier interval on the CPU, one kernel on a
/// GPU.

#include <optional>
#include <variant>
#include <vector>

#include "graph/graph.h"

namespace hearth::plan {

using graph::ValueId;
using graph::WeightId;

/// One graph node as it is.
struct OpLaunch {
  graph::AnyOp op;
  std::vector<ValueId> inputs;
  ValueId output{};
};

/// A gate on its way to what it multiplies: activation(columns of a value).
struct Gate {
  graph::ActivationKind kind{};
  ValueId value{};
  std::optional<graph::ColumnPattern> columns;  // of `value`; otherwise all
};

/// [RMSNorm ->] [input gate ->] projections of one input [-> gated activation | row gate]
/// [-> residual add].
/// The norm is recomputed by whoever needs it, so that it costs no launch of its own; concatenated
/// projections give one long run of output rows instead of several short ones.
struct Projection {
  struct Part {
    graph::MatMul matmul;
    ValueId output{};  // unused with `gate`
  };

  ValueId input{};
  std::optional<graph::RmsNorm> norm;  // of whole rows, or per head
  std::optional<Gate> input_gate;      // then the input is norm(input) * gate
  std::vector<Part> parts;
  /// With two parts: output = activation(part 0) * part 1.
  std::optional<graph::ActivationKind> gate;
  /// With one part: part 0 times the activation of one number per row.
  std::optional<Gate> row_gate;
  /// With one part: output = residual + part 0.
  std::optional<ValueId> residual;
  ValueId output{};  // of a gate or `residual`; otherwise every part has its own

  [[nodiscard]] bool has_one_output() const { return gate || row_gate || residual; }
};

/// [per-head RMSNorm ->] [RoPE ->] of q and k, then attention with its cache write.
struct AttentionBlock {
  ValueId q{}, k{}, v{};
  std::optional<graph::ColumnPattern> q_columns;  // of q; otherwise all
  std::optional<graph::RmsNorm> q_norm, k_norm;
  std::optional<graph::RopeParams> rope;
  graph::AttentionParams attention;
  ValueId output{};
};

/// output = residual + RMSNorm(input): the post-norms of gemma.
struct NormAdd {
  ValueId input{};
  graph::RmsNorm norm;
  ValueId residual{};
  ValueId output{};
};

/// [RMSNorm ->] activation(gate) * up by the chosen experts, [rows, slots * ffn].
struct ExpertGate {
  ValueId input{}, routing{};
  std::optional<graph::RmsNorm> norm;
  graph::ExpertMatMul gate, up;
  graph::ActivationKind kind{};
  ValueId output{};
};

/// Down by the chosen experts, their weighted sum [-> residual add].
struct ExpertDown {
  ValueId input{}, routing{};
  graph::ExpertMatMul down;
  std::optional<ValueId> residual;
  ValueId output{};
};

using Launch = std::variant<OpLaunch, Projection, AttentionBlock, NormAdd, ExpertGate, ExpertDown>;

/// Values a launch reads, and values it writes.
std::vector<ValueId> reads(const Launch& launch);
std::vector<ValueId> writes(const Launch& launch);
/// Weights a launch reads as a whole; not the table that an embedding gathers rows from, nor the
/// matrices of experts.
std::vector<WeightId> weights_read(const Launch& launch);
/// Products by chosen experts, which read the matrices of those alone.
std::vector<graph::ExpertMatMul> expert_products(const Launch& launch);

/// "projection", "attention_block", ..., or the name of the op.
std::string_view launch_name(const Launch& launch);

}  // namespace hearth::plan
