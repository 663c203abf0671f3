#pragma once
/// What a synthetic model of the llama architecture (model/arch/llama.cpp) consists of.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf/metadata.h"
#include "model/synth/shapes.h"
#include "tensor/shape.h"

namespace hearth::model {

/// A tensor without its type. Vectors are norms.
struct SynthTensor {
  std::string name;
  std::string_view role;              // "attn_v" of "blk.7.attn_v.weight"
  std::optional<std::int64_t> layer;  // none at the ends of the model
  Shape shape;
};

/// In the order of the file.
std::vector<SynthTensor> llama_tensors(const ModelShape& shape);

/// Sets general.architecture and the llama.* keys.
void set_llama_keys(formats::Metadata& metadata, const ModelShape& shape);

}  // namespace hearth::model
