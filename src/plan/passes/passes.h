#pragma once
/// Fusion passes: each rewrites the launch list so that it computes the same values in fewer
/// launches. A pass may only fuse away a value that nothing else reads.

#include <vector>

#include "graph/value.h"
#include "plan/launch.h"

namespace hearth::plan {

/// What the passes work on.
struct Draft {
  const std::vector<graph::ValueDesc>& values;
  const graph::WeightTable& weights;
  graph::ValueId result;  // read from outside
  std::vector<Launch> launches;
};

/// The products of chosen experts become ExpertGate and ExpertDown.
void fuse_experts(Draft& draft);
/// matmuls of one input become one Projection, and the RMSNorm before them becomes its prologue, as
/// it does for an ExpertGate that reads the same.
void fuse_projections(Draft& draft);
/// activation and mul after a two-part projection become its gate.
void fuse_gates(Draft& draft);
/// mul of a [normed] value by an activation, before a Projection, becomes its input gate.
void fuse_input_gates(Draft& draft);
/// mul of a one-part projection by the activation of one number per row becomes its row gate.
void fuse_row_gates(Draft& draft);
/// add after a one-part projection or an ExpertDown becomes its residual; add after an RMSNorm
/// becomes NormAdd.
void fuse_residuals(Draft& draft);
/// per-head norms and RoPE of q and k join their attention.
void fuse_attention(Draft& draft);

}  // namespace hearth::plan
