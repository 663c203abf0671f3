#include "graph/value.h"

#include "quant/registry.h"

namespace hearth::graph {

std::int64_t Weight::n_bytes() const {
  return tensor.data.empty() ? *quant::tensor_bytes(tensor.dtype, tensor.shape)
                             : static_cast<std::int64_t>(tensor.data.size());
}

}  // namespace hearth::graph
