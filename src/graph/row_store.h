#pragma once

#include <cstdint>

#include "base/result.h"
#include "tensor/buffer.h"

namespace hearth::graph {

/// Rows of an activation that outlive their step, because another graph of the model reads them.
struct RowStoreDesc {
  std::int64_t n_rows = 0;
  std::int64_t features = 0;

  [[nodiscard]] std::int64_t bytes() const {
    return n_rows * features * static_cast<std::int64_t>(sizeof(float));
  }
};

/// The rows in host memory, f32.
class HostRowStore {
 public:
  explicit HostRowStore(const RowStoreDesc& desc) : desc_(desc), storage_(desc.bytes()) {}

  [[nodiscard]] const RowStoreDesc& desc() const { return desc_; }
  [[nodiscard]] float* row(std::int64_t i) {
    return storage_.data<float>(i * desc_.features * static_cast<std::int64_t>(sizeof(float)));
  }

 private:
  RowStoreDesc desc_;
  Buffer storage_;
};

}  // namespace hearth::graph
