#include "plan/plan.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/format.h"
#include "plan/passes/passes.h"
#include "plan/placement.h"
#include "quant/registry.h"

namespace hearth::plan {
namespace {

std::int64_t weight_bytes(const graph::WeightTable& weights, graph::WeightId id) {
  return weights[graph::index(id)].n_bytes();
}

const graph::AttentionParams* attention_of(const Launch& launch) {
  if (const auto* block = std::get_if<AttentionBlock>(&launch)) {
    return &block->attention;
  }
  const auto* single = std::get_if<OpLaunch>(&launch);
  const auto* attention = single != nullptr ? std::get_if<graph::Attention>(&single->op) : nullptr;
  return attention != nullptr ? &attention->params : nullptr;
}

/// The recurrent state that a launch reads and writes.
std::int64_t state_bytes(const Launch& launch, const graph::WeightTable& weights) {
  const auto* single = std::get_if<OpLaunch>(&launch);
  if (single == nullptr) {
    return 0;
  }
  graph::StateLayer part{.conv_taps = 1};  // of the layer, as much as the op touches
  if (const auto* delta = std::get_if<graph::DeltaRule>(&single->op)) {
    part.n_heads = delta->params.n_value_heads;
    part.key_dim = delta->params.key_dim;
    part.value_dim = delta->params.value_dim;
  } else if (const auto* conv = std::get_if<graph::CausalConv>(&single->op)) {
    const auto& shape = graph::tensor(weights, conv->weight).shape;
    part.conv_channels = shape[0];
    part.conv_taps = shape.back();
  }
  return part.bytes();
}

ExpertCost expert_cost(const graph::ExpertMatMul& product, std::int64_t n_used,
                       const graph::WeightTable& weights) {
  const auto& tensor = graph::tensor(weights, product.weight);
  return {.n_experts = tensor.shape[0],
          .n_used = n_used,
          .expert_bytes = product.n_out * quant::row_bytes(tensor.dtype, tensor.shape.back())};
}

StepCost count_cost(const Plan& plan, const graph::WeightTable& weights, DType kv_dtype) {
  StepCost cost;
  cost.n_launches = static_cast<std::int64_t>(plan.launches.size());
  std::set<graph::WeightId> counted;
  for (const auto& launch : plan.launches) {
    for (const auto id : weights_read(launch)) {
      if (counted.insert(id).second) {  // a norm may be read by two launches
        cost.weight_bytes += weight_bytes(weights, id);
      }
    }
    for (const auto& product : expert_products(launch)) {
      const auto routing = reads(launch)[1];
      cost.experts.push_back(
          expert_cost(product, plan.values[graph::index(routing)].features / 2, weights));
    }
    cost.state_bytes += state_bytes(launch, weights);
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

std::int64_t ExpertCost::bytes(std::int64_t rows) const {
  const auto n = static_cast<double>(n_experts);
  const double n_read =
      n * (1 - std::pow(1 - static_cast<double>(n_used) / n, static_cast<double>(rows)));
  return std::llround(n_read * static_cast<double>(expert_bytes));
}

std::int64_t StepCost::bytes(std::int64_t rows, std::int64_t context) const {
  std::int64_t row_bytes = embed_row_bytes;
  for (const auto& layer : kv) {
    const std::int64_t seen = layer.window == 0 ? context : std::min(context, layer.window);
    row_bytes += (seen + 1) * layer.key_bytes;
  }
  row_bytes += 2 * state_bytes;
  std::int64_t total = weight_bytes + rows * row_bytes;
  for (const auto& launch : experts) {
    total += launch.bytes(rows);
  }
  return total;
}

Plan make_plan(const graph::Graph& graph, const graph::WeightTable& weights,
               const Options& options) {
  Draft draft{graph.values, weights, graph.result, {}};
  for (const auto& node : graph.nodes) {
    draft.launches.emplace_back(OpLaunch{node.op, node.inputs, node.output});
  }
  if (options.fuse) {
    fuse_experts(draft);
    fuse_projections(draft);
    fuse_gates(draft);
    fuse_input_gates(draft);
    fuse_row_gates(draft);
    fuse_attention(draft);
    fuse_residuals(draft);
  }
  Plan plan{graph.bucket, graph.values, std::move(draft.launches), {}, graph.result, {}};
  plan.cost = count_cost(plan, weights, options.kv_dtype);
  plan.cost.arena_bytes = place_values(plan, options.merged_launches);
  return plan;
}

std::vector<std::string_view> launch_names(const Plan& plan) {
  std::vector<std::string_view> names;
  for (const Launch& launch : plan.launches) {
    names.push_back(launch_name(launch));
  }
  return names;
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
