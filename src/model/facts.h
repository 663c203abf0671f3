#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "formats/gguf/metadata.h"
#include "tensor/shape.h"

namespace hearth::model {

/// One tensor of a model, without its data.
struct TensorFacts {
  std::string_view name;  // canonical
  Shape shape;
  std::int64_t n_bytes = 0;
};

enum class LayerKind : std::uint8_t { attention, recurrent, other };
std::string_view name_of(LayerKind kind);

/// A kind of weights: how many there are, and how many of them one token reads. Of experts those
/// of its choice, of the embedding its row.
struct Component {
  std::string_view name;
  std::int64_t n_parameters = 0;
  std::int64_t n_active = 0;
  std::int64_t active_bytes = 0;
};

/// What can be said of a model from its tensors and a few keys, also where nothing here can run it.
struct ModelFacts {
  std::vector<LayerKind> layers;  // of the trunk
  std::int64_t n_parameters = 0;  // of the trunk
  /// Of blocks behind the trunk that predict further tokens.
  std::int64_t n_prediction_parameters = 0;
  std::int64_t kv_elements = 0;       // of the keys and values of one token, all layers
  std::int64_t state_bytes = 0;       // recurrent state of one sequence, f32
  std::vector<Component> components;  // of the trunk, in the order in which a token meets them

  /// Parameters that one token reads; a row of the embedding does not count.
  [[nodiscard]] std::int64_t n_active() const;
  /// Bytes of weights that one token reads.
  [[nodiscard]] std::int64_t active_bytes() const;
};

ModelFacts facts_of(const formats::Metadata& metadata, std::span<const TensorFacts> tensors);

}  // namespace hearth::model
