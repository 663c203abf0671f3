#include "graph/loaded_weights.h"

namespace hearth::graph {

Result<LoadedWeights> LoadedWeights::load(const WeightTable& weights) {
  LoadedWeights loaded;
  loaded.table_ = weights;
  for (Weight& weight : loaded.table_) {
    if (weight.origin.make) {
      Buffer& made = loaded.made_.emplace_back();
      HEARTH_ASSIGN(made, weight.origin.make());
      weight.tensor.data = made.bytes();
      loaded.bytes_ += made.size();
    }
  }
  return loaded;
}

}  // namespace hearth::graph
