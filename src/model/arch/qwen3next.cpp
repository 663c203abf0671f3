/// qwen3next: Qwen3-Next 80B-A3B. As qwen35moe, but value heads stay grouped by key head, both
/// gates of the delta rule share a matrix in which each key head has its own rows, and older files
/// have the other projections so as well.

#include <array>

#include "model/arch/all.h"
#include "model/arch/qwen_hybrid.h"

namespace hearth::model {
namespace {

/// Takes apart a matrix in which each key head has a group of rows.
class RowGroups {
 public:
  RowGroups(std::int64_t n_groups, std::int64_t group_rows)
      : n_groups_(n_groups), group_rows_(group_rows) {}

  /// Adds rows [begin, begin + n) of every group, group by group.
  void append(std::int64_t begin, std::int64_t n, std::vector<std::int64_t>& order) const {
    for (std::int64_t group = 0; group < n_groups_; ++group) {
      for (std::int64_t i = begin; i < begin + n; ++i) {
        order.push_back(group * group_rows_ + i);
      }
    }
  }
  [[nodiscard]] std::int64_t n_rows() const { return n_groups_ * group_rows_; }

 private:
  std::int64_t n_groups_;
  std::int64_t group_rows_;
};

/// ssm_in: q, k, v and z of each key head.
Result<void> bind_joined(WeightBinder& weights, const HyperParams& params,
                         const DeltaNetParams& net, const std::string& name,
                         DeltaNetProjections& in) {
  const std::int64_t key = net.heads.key_dim;
  const std::int64_t values = net.heads.value_features() / net.heads.n_key_heads;
  const RowGroups groups(net.heads.n_key_heads, 2 * (key + values));
  std::vector<std::int64_t> qkv;
  std::vector<std::int64_t> gate;
  groups.append(0, key, qkv);
  groups.append(key, key, qkv);
  groups.append(2 * key, values, qkv);
  groups.append(2 * key + values, values, gate);
  HEARTH_ASSIGN(in.qkv,
                weights.reordered_rows(name, groups.n_rows(), params.embed, "q, k, v", qkv));
  HEARTH_ASSIGN(in.gate, weights.reordered_rows(name, groups.n_rows(), params.embed, "gate", gate));
  return {};
}

Result<DeltaNetProjections> bind_projections(WeightBinder& weights, const HyperParams& params,
                                             const DeltaNetParams& net, std::int64_t layer) {
  DeltaNetProjections in;
  if (const auto joined = block_name(layer, "ssm_in.weight"); weights.has(joined)) {
    HEARTH_TRY(bind_joined(weights, params, net, joined, in));
  } else {
    HEARTH_ASSIGN(
        in.qkv, weights.matrix(block_name(layer, "attn_qkv.weight"), net.channels(), params.embed));
    HEARTH_ASSIGN(in.gate, weights.matrix(block_name(layer, "attn_gate.weight"),
                                          net.heads.value_features(), params.embed));
  }
  const std::int64_t per_key_head = net.heads.n_value_heads / net.heads.n_key_heads;
  const RowGroups groups(net.heads.n_key_heads, 2 * per_key_head);
  std::vector<std::int64_t> write;
  std::vector<std::int64_t> decay;
  groups.append(0, per_key_head, write);
  groups.append(per_key_head, per_key_head, decay);
  const auto gates = block_name(layer, "ssm_ba.weight");
  HEARTH_ASSIGN(in.write_gate,
                weights.reordered_rows(gates, groups.n_rows(), params.embed, "write", write));
  HEARTH_ASSIGN(in.decay_gate,
                weights.reordered_rows(gates, groups.n_rows(), params.embed, "decay", decay));
  return in;
}

}  // namespace

Result<std::unique_ptr<Architecture>> bind_qwen3next(WeightBinder& weights) {
  return bind_hybrid(weights, {.name = "qwen3next",
                               .order = graph::HeadOrder::grouped,
                               .has_experts = true,
                               .has_rope_sections = false,
                               .bind_projections = bind_projections});
}

}  // namespace hearth::model
