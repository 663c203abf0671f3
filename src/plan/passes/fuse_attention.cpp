#include "plan/passes/passes.h"
#include "plan/passes/uses.h"

namespace hearth::plan {
namespace {

/// Walks back from an operand of attention over the single-use RoPE, per-head norm and columns that
/// produced it.
struct Prologue {
  std::optional<graph::ColumnPattern> columns;
  std::optional<graph::RopeParams> rope;
  std::optional<graph::RmsNorm> norm;
  graph::ValueId input{};
  std::set<std::size_t> absorbed;
};

Prologue find_prologue(const Draft& draft, const Uses& uses, graph::ValueId operand,
                       std::int64_t head_dim) {
  Prologue found{.input = operand};
  if (!uses.only_reader(found.input)) {
    return found;
  }
  if (const auto* rope = as_op<graph::Rope>(draft.launches[uses.writer(found.input)])) {
    const std::size_t at = uses.writer(found.input);
    found.rope = rope->params;
    found.absorbed.insert(at);
    found.input = reads(draft.launches[at]).front();
  }
  if (!uses.only_reader(found.input)) {
    return found;
  }
  const std::size_t at = uses.writer(found.input);
  if (const auto* norm = as_op<graph::RmsNorm>(draft.launches[at]);
      norm != nullptr &&
      draft.weights[graph::index(norm->weight)].tensor.shape.back() == head_dim) {
    found.norm = *norm;
    found.absorbed.insert(at);
    found.input = reads(draft.launches[at]).front();
  }
  if (!uses.only_reader(found.input)) {
    return found;
  }
  const std::size_t first = uses.writer(found.input);
  if (const auto* columns = as_op<graph::Columns>(draft.launches[first]);
      columns != nullptr && columns->pattern.width == head_dim) {
    found.columns = columns->pattern;
    found.absorbed.insert(first);
    found.input = reads(draft.launches[first]).front();
  }
  return found;
}

}  // namespace

void fuse_attention(Draft& draft) {
  const Uses uses(draft);
  std::set<std::size_t> dropped;
  for (auto& launch : draft.launches) {
    const auto* attention = as_op<graph::Attention>(launch);
    if (attention == nullptr) {
      continue;
    }
    const auto& single = std::get<OpLaunch>(launch);
    AttentionBlock block{.q = single.inputs[0],
                         .k = single.inputs[1],
                         .v = single.inputs[2],
                         .q_columns = {},
                         .q_norm = {},
                         .k_norm = {},
                         .rope = {},
                         .attention = attention->params,
                         .output = single.output};
    Prologue q = find_prologue(draft, uses, block.q, attention->params.head_dim);
    Prologue k = find_prologue(draft, uses, block.k, attention->params.head_dim);
    const bool whole_heads = !q.rope || q.rope->head_dim == attention->params.head_dim;
    if (q.rope == k.rope && whole_heads &&
        !k.columns) {  // one rotation for both, as every model here has
      block.q = q.input;
      block.k = k.input;
      block.q_columns = q.columns;
      block.q_norm = q.norm;
      block.k_norm = k.norm;
      block.rope = q.rope;
      dropped.merge(q.absorbed);
      dropped.merge(k.absorbed);
    }
    launch = block;
  }
  erase_launches(draft.launches, dropped);
}

}  // namespace hearth::plan
