#include "backend/cpu/expert_rows.h"

#include <algorithm>

#include "base/checked.h"
#include "graph/ops/router.h"

namespace hearth::backend::cpu {

PairOrder::PairOrder(Carver& carver, std::int64_t n_experts, std::int64_t max_pairs)
    : begins(carver.take<std::int32_t>(n_experts + 1)),
      pairs(carver.take<std::int32_t>(max_pairs)),
      places(carver.take<std::int32_t>(max_pairs)) {}

/// A counting sort, stable.
void PairOrder::sort(const float* routing, std::int64_t n_rows, std::int64_t n_used,
                     std::int64_t n_experts) const {
  const auto expert_of = [&](std::int64_t pair) {
    return graph::Routing(routing + pair / n_used * 2 * n_used, n_used).expert(pair % n_used);
  };
  std::fill_n(begins, n_experts + 1, 0);
  for (std::int64_t pair = 0; pair < n_rows * n_used; ++pair) {
    ++begins[expert_of(pair)];
  }
  std::int32_t total = 0;
  for (std::int64_t expert = 0; expert <= n_experts; ++expert) {
    total += begins[expert];
    begins[expert] = total;  // the end, which the next loop moves to the beginning
  }
  for (std::int64_t pair = n_rows * n_used - 1; pair >= 0; --pair) {
    const std::int32_t place = --begins[expert_of(pair)];
    pairs[place] = static_cast<std::int32_t>(pair);
    places[pair] = place;
  }
}

GatheredRows::GatheredRows(std::span<const ExpertMatrices> products)
    : n_in_(products.front().n_in) {
  for (const auto& product : products) {
    needs_values_ = needs_values_ || product.activation_block == 0;
    for (std::size_t form = 0; form < code_blocks.size(); ++form) {
      needs_steps_[form] = needs_steps_[form] || product.activation_block == code_blocks[form];
    }
  }
}

GatheredRows::Store GatheredRows::carve(Carver& carver, std::int64_t n_places) const {
  Store store;
  if (needs_values_) {
    store.values = carver.take<float>(n_places * n_in_);
  }
  for (std::size_t form = 0; form < code_blocks.size(); ++form) {
    if (needs_steps_[form]) {
      store.steps[form] = carver.take<ActivationStep>(n_places * n_steps() + step_slack);
    }
  }
  return store;
}

void GatheredRows::put(const KernelSet& kernels, const Store& store, const PairOrder& order,
                       const Pair& pair, const float* x) const {
  if (needs_values_) {
    std::copy_n(x, n_in_, store.values + order.places[pair.index] * n_in_);
  }
  for (std::size_t form = 0; form < code_blocks.size(); ++form) {
    if (needs_steps_[form]) {
      kernels.quantize(x, n_in_, code_blocks[form], steps_of(store, form, order, pair),
                       order.n_rows_of(pair.expert));
    }
  }
}

void GatheredRows::copy(const Store& store, const PairOrder& order, const Pair& from,
                        const Pair& to) const {
  if (needs_values_) {
    std::copy_n(store.values + order.places[from.index] * n_in_, n_in_,
                store.values + order.places[to.index] * n_in_);
  }
  for (std::size_t form = 0; form < code_blocks.size(); ++form) {
    if (needs_steps_[form]) {
      const ActivationStep* source = steps_of(store, form, order, from);
      ActivationStep* target = steps_of(store, form, order, to);
      for (std::int64_t step = 0; step < n_steps(); ++step) {
        target[step * order.n_rows_of(to.expert)] = source[step * order.n_rows_of(from.expert)];
      }
    }
  }
}

ActivationRows GatheredRows::rows(const Store& store, const PairOrder& order, std::int64_t expert,
                                  const ExpertMatrices& product) const {
  if (product.activation_block == 0) {
    return {.values = store.values + order.begins[expert] * n_in_};
  }
  const std::size_t form = product.activation_block == code_blocks[0] ? 0 : 1;
  return {.steps = first_step(store, form, order, expert)};
}

std::int64_t GatheredRows::n_steps() const {
  return ceil_div(n_in_, step_weights);
}

ActivationStep* GatheredRows::first_step(const Store& store, std::size_t form,
                                         const PairOrder& order, std::int64_t expert) const {
  return store.steps[form] + order.begins[expert] * n_steps();
}

ActivationStep* GatheredRows::steps_of(const Store& store, std::size_t form, const PairOrder& order,
                                       const Pair& pair) const {
  return first_step(store, form, order, pair.expert) + order.places[pair.index] -
         order.begins[pair.expert];
}

}  // namespace hearth::backend::cpu
