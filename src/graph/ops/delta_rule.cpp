#include "graph/ops/delta_rule.h"

#include <array>
#include <vector>

#include "base/fail.h"
#include "graph/builder.h"

namespace hearth::graph {
namespace {

/// The memory of one value head.
class HeadMemory {
 public:
  HeadMemory(float* data, std::int64_t key_dim) : data_(data), key_dim_(key_dim) {}

  [[nodiscard]] float& at(std::int64_t i, std::int64_t j) const {
    return data_[(j / state_strip * key_dim_ + i) * state_strip + j % state_strip];
  }

 private:
  float* data_;
  std::int64_t key_dim_;
};

/// Column j against a vector over the key dimension.
float dot_column(const HeadMemory& memory, std::int64_t j, const std::vector<float>& x) {
  std::array<float, 4> partial{};
  for (std::size_t i = 0; i < x.size(); ++i) {
    partial[i % 4] = std::fma(memory.at(static_cast<std::int64_t>(i), j), x[i], partial[i % 4]);
  }
  return (partial[0] + partial[1]) + (partial[2] + partial[3]);
}

struct HeadInputs {
  std::vector<float> q, k;  // [key_dim], normalised
  const float* v;           // [value_dim]
  float decay;
  float beta;
};

/// One token of one head; out [value_dim].
void step_head(const HeadMemory& memory, const DeltaRuleParams& params, const HeadInputs& x,
               float* out) {
  for (std::int64_t j = 0; j < params.value_dim; ++j) {
    for (std::int64_t i = 0; i < params.key_dim; ++i) {
      memory.at(i, j) *= x.decay;
    }
    const float delta = x.beta * (x.v[j] - dot_column(memory, j, x.k));
    for (std::int64_t i = 0; i < params.key_dim; ++i) {
      float& cell = memory.at(i, j);
      cell = std::fma(x.k[static_cast<std::size_t>(i)], delta, cell);
    }
    out[j] = dot_column(memory, j, x.q);
  }
}

}  // namespace

Result<ValueDesc> DeltaRule::infer(std::span<const ValueDesc> inputs, const WeightTable& weights,
                                   std::int64_t /*n_rows*/) const {
  if (params.n_key_heads < 1 || params.n_value_heads % params.n_key_heads != 0) {
    return fail(ErrorCode::invalid_argument,
                "delta_rule: {} key heads do not divide {} value heads", params.n_key_heads,
                params.n_value_heads);
  }
  const std::int64_t qkv = 2 * params.key_features() + params.value_features();
  if (inputs[0].features != qkv || inputs[1].features != params.n_value_heads ||
      inputs[2].features != params.n_value_heads) {
    return fail(ErrorCode::invalid_argument,
                "delta_rule: inputs have {}, {}, {} features, expected {}, {}, {}",
                inputs[0].features, inputs[1].features, inputs[2].features, qkv,
                params.n_value_heads, params.n_value_heads);
  }
  HEARTH_TRY(expect_f32_weight(name, weights, rate, Shape{params.n_value_heads}));
  HEARTH_TRY(expect_f32_weight(name, weights, bias, Shape{params.n_value_heads}));
  return ValueDesc{inputs[0].axis, inputs[0].rows, params.value_features()};
}

void DeltaRule::run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const {
  const auto key_dim = static_cast<std::size_t>(params.key_dim);
  const float query_scale = 1.0f / std::sqrt(static_cast<float>(params.key_dim));
  const std::int64_t head_floats = params.key_dim * params.value_dim;
  HeadInputs x{.q = std::vector<float>(key_dim), .k = std::vector<float>(key_dim)};
  for (std::int64_t row = 0; row < out.rows; ++row) {
    float* memory = context.states.memory_for(context.step, row, params.layer, 0,
                                              params.n_value_heads * head_floats);
    const float* q = inputs[0].row(row);
    const float* k = q + params.key_features();
    const float* v = k + params.key_features();
    for (std::int64_t head = 0; head < params.n_value_heads; ++head) {
      const std::int64_t key_start = params.key_head(head) * params.key_dim;
      unit_vector(q + key_start, params.key_dim, query_scale, x.q.data());
      unit_vector(k + key_start, params.key_dim, 1.0f, x.k.data());
      x.v = v + head * params.value_dim;
      x.beta = canonical_sigmoid(inputs[1].row(row)[head]);
      x.decay = decay_of(f32_data(context.weights, rate)[head],
                         f32_data(context.weights, bias)[head], inputs[2].row(row)[head]);
      step_head({memory + head * head_floats, params.key_dim}, params, x,
                out.row(row) + head * params.value_dim);
    }
  }
}

ValueId delta_rule(GraphBuilder& g, const DeltaRuleParams& params, const DeltaRuleInputs& inputs,
                   WeightId rate, WeightId bias) {
  return g.add(DeltaRule{params, rate, bias}, {inputs.qkv, inputs.write_gate, inputs.decay_gate});
}

}  // namespace hearth::graph
