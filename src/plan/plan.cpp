#include "plan/plan.h"

#include <algorithm>

#include "base/format.h"
#include "plan/passes/passes.h"
#include "plan/placement.h"
#include "quant/registry.h"

namespace hearth::plan {
namespace {

std::int64_t weight_bytes(const graph::WeightTable& weights, graph::WeightId id) {
  return static_cast<std::int64_t>(weights[graph::index(id)].tensor.data.size());
}

const graph::AttentionParams* attention_of(const Launch& launch) {
  if (const auto* block = std::get_if<AttentionBlock>(&launch)) {
    return &block->attention;
  }
  const auto* single = std::get_if<OpLaunch>(&launch);
  const auto* attention = single != nullptr ? std::get_if<graph::Attention>(&single->op) : nullptr;
  return attention != nullptr ? &attention->params : nullptr;
}

StepCost count_cost(const Plan& plan, const graph::WeightTable& weights, DType kv_dtype) {
  StepCost cost;
  cost.n_launches = static_cast<std::int64_t>(plan.launches.size());
  for (const auto& launch : plan.launches) {
    for (const auto id : weights_read(launch)) {
      cost.weight_bytes += weight_bytes(weights, id);
    }
    if (const auto* single = std::get_if<OpLaunch>(&launch)) {
      if (const auto* embed = std::get_if<graph::Embed>(&single->op)) {
        const auto& table = weights[graph::index(embed->table)].tensor;
        cost.embed_row_bytes += quant::row_bytes(table.dtype, table.shape.back());
      }
    }
    if (const auto* attention = attention_of(launch)) {
      cost.kv.push_back(
          {.key_bytes = 2 * quant::row_bytes(kv_dtype, attention->n_kv_heads * attention->head_dim),
           .window = attention->window});
    }
  }
  return cost;
}

std::string list(const std::vector<graph::ValueId>& values) {
  std::string text;
  for (const auto value : values) {
    text += format("{}%{}", text.empty() ? "" : ", ", static_cast<int>(value));
  }
  return text;
}

}  // namespace

std::int64_t StepCost::bytes(std::int64_t rows, std::int64_t context) const {
  std::int64_t row_bytes = embed_row_bytes;
  for (const auto& layer : kv) {
    const std::int64_t seen = layer.window == 0 ? context : std::min(context, layer.window);
    row_bytes += (seen + 1) * layer.key_bytes;
  }
  return weight_bytes + rows * row_bytes;
}

Plan make_plan(const graph::Graph& graph, const graph::WeightTable& weights,
               const Options& options) {
  Draft draft{graph.values, weights, graph.logits, {}};
  for (const auto& node : graph.nodes) {
    draft.launches.emplace_back(OpLaunch{node.op, node.inputs, node.output});
  }
  if (options.fuse) {
    fuse_projections(draft);
    fuse_gates(draft);
    fuse_attention(draft);
    fuse_residuals(draft);
  }
  Plan plan{graph.bucket, graph.values, std::move(draft.launches), {}, graph.logits, {}};
  plan.cost = count_cost(plan, weights, options.kv_dtype);
  plan.cost.arena_bytes = place_values(plan);
  return plan;
}

std::string to_string(const Plan& plan) {
  std::string text;
  for (std::size_t i = 0; i < plan.launches.size(); ++i) {
    const auto& launch = plan.launches[i];
    text += format("{:4} {} {} -> {}\n", i, launch_name(launch), list(reads(launch)),
                   list(writes(launch)));
  }
  text += format("{} launches, {} weight bytes, {} arena bytes\n", plan.cost.n_launches,
                 plan.cost.weight_bytes, plan.cost.arena_bytes);
  return text;
}

}  // namespace hearth::plan
