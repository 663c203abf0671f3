#include "graph/ops/elementwise.h"

#include "base/fail.h"
#include "base/math.h"
#include "graph/builder.h"

namespace hearth::graph {
namespace {

Result<ValueDesc> infer_equal(std::string_view op, std::span<const ValueDesc> inputs) {
  if (inputs[0] != inputs[1]) {
    return fail(ErrorCode::invalid_argument,
                "{}: operands have {} and {} features, expected the same", op, inputs[0].features,
                inputs[1].features);
  }
  return inputs[0];
}

template <class F>
void for_each_element(const Rows& out, F&& f) {
  for (std::int64_t i = 0; i < out.rows * out.features; ++i) {
    out.data[i] = f(i);
  }
}

}  // namespace

Result<ValueDesc> Add::infer(std::span<const ValueDesc> inputs, const WeightTable&,
                             std::int64_t) const {
  return infer_equal(name, inputs);
}

void Add::run(const OpContext&, std::span<const ConstRows> inputs, Rows out) const {
  for_each_element(out, [&](std::int64_t i) { return inputs[0].data[i] + inputs[1].data[i]; });
}

Result<ValueDesc> Mul::infer(std::span<const ValueDesc> inputs, const WeightTable&,
                             std::int64_t) const {
  return infer_equal(name, inputs);
}

void Mul::run(const OpContext&, std::span<const ConstRows> inputs, Rows out) const {
  for_each_element(out, [&](std::int64_t i) { return inputs[0].data[i] * inputs[1].data[i]; });
}

Result<ValueDesc> Activation::infer(std::span<const ValueDesc> inputs, const WeightTable&,
                                    std::int64_t) const {
  return inputs[0];
}

void Activation::run(const OpContext&, std::span<const ConstRows> inputs, Rows out) const {
  const float* x = inputs[0].data;
  for_each_element(out, [&](std::int64_t i) {
    return kind == ActivationKind::silu ? canonical_silu(x[i]) : canonical_gelu_tanh(x[i]);
  });
}

Result<ValueDesc> Softcap::infer(std::span<const ValueDesc> inputs, const WeightTable&,
                                 std::int64_t) const {
  return inputs[0];
}

void Softcap::run(const OpContext&, std::span<const ConstRows> inputs, Rows out) const {
  for_each_element(out,
                   [&](std::int64_t i) { return cap * canonical_tanh(inputs[0].data[i] / cap); });
}

ValueId add(GraphBuilder& g, ValueId a, ValueId b) {
  return g.add(Add{}, {a, b});
}
ValueId mul(GraphBuilder& g, ValueId a, ValueId b) {
  return g.add(Mul{}, {a, b});
}
ValueId activation(GraphBuilder& g, ActivationKind kind, ValueId x) {
  return g.add(Activation{kind}, {x});
}
ValueId softcap(GraphBuilder& g, float cap, ValueId x) {
  return g.add(Softcap{cap}, {x});
}

}  // namespace hearth::graph
