#pragma once
/// The list of ops. A new op is a file in graph/ops/ and one name here; the reference interpreter,
/// the plan and every backend then run it through its reference kernel.

#include <string_view>
#include <variant>

#include "graph/ops/activation.h"
#include "graph/ops/add.h"
#include "graph/ops/argmax.h"
#include "graph/ops/attention.h"
#include "graph/ops/causal_conv.h"
#include "graph/ops/columns.h"
#include "graph/ops/concat.h"
#include "graph/ops/delta_rule.h"
#include "graph/ops/embed.h"
#include "graph/ops/expert_matmul.h"
#include "graph/ops/expert_sum.h"
#include "graph/ops/matmul.h"
#include "graph/ops/mul.h"
#include "graph/ops/rms_norm.h"
#include "graph/ops/rope.h"
#include "graph/ops/router.h"
#include "graph/ops/row_store.h"
#include "graph/ops/select_rows.h"
#include "graph/ops/softcap.h"
#include "graph/ops/top_k.h"

namespace hearth::graph {

using AnyOp = std::variant<Embed, RmsNorm, MatMul, Rope, Attention, Add, Mul, Activation, Softcap,
                           SelectRows, Columns, Concat, CausalConv, DeltaRule, Router, ExpertMatMul,
                           ExpertSum, StoreRows, LoadRows, Argmax, TopK>;

[[nodiscard]] inline std::string_view op_name(const AnyOp& op) {
  return std::visit([](const auto& each) { return each.name; }, op);
}

}  // namespace hearth::graph
