#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf/metadata.h"
#include "model/synth/shapes.h"
#include "tensor/shape.h"

namespace hearth::model {

/// What the numbers of a tensor are.
enum class SynthFill : std::uint8_t {
  random,  // as the mixture stores it
  random_f32,
  ones,        // norms
  slow_decay,  // the rate of a memory that forgets a tenth of itself or so with each token
};

/// A tensor without its type.
struct SynthTensor {
  std::string name;
  std::string_view role;              // "attn_v" of "blk.7.attn_v.weight"
  std::optional<std::int64_t> layer;  // none at the ends of the model
  Shape shape;
  SynthFill fill = SynthFill::random;
};

/// The tensors of one architecture in the order of the file, and its metadata keys,
/// general.architecture included.
struct SynthArchitecture {
  std::vector<SynthTensor> (*tensors)(const ModelShape& shape);
  void (*set_keys)(formats::Metadata& metadata, const ModelShape& shape);
};

SynthArchitecture llama_synth();
SynthArchitecture qwen_hybrid_synth();

}  // namespace hearth::model
