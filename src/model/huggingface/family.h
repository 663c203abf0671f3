#pragma once
/// What differs between the model families of Hugging Face folders, as tables.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/gguf/metadata.h"
#include "model/facts.h"
#include "model/huggingface/config.h"
#include "model/huggingface/gather.h"

namespace hearth::model {

enum class KeyKind { count, number };  // stored as u32, f32

/// A number of config.json and its key below the architecture's name.
struct KeyRule {
  std::string_view from;
  std::string_view to;
  KeyKind kind = KeyKind::count;
  bool is_required = true;
};

/// What transforms must know: sizes, all within bounds, and the layout.
struct Dimensions {
  std::vector<LayerKind> layers;
  std::int64_t n_heads = 0;
  std::int64_t n_kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t n_experts = 0;  // 0: not a mixture of experts
  // Of recurrent layers, else 0.
  std::int64_t n_key_heads = 0;
  std::int64_t n_value_heads = 0;
  std::int64_t key_dim = 0;  // of one head
  std::int64_t value_dim = 0;
  /// Hybrid models as mlx-lm rearranges them: norms have the one added that others leave out, and
  /// convolutions are [channels, taps, 1]. Only the shape of those tells.
  bool is_in_mlx_layout = false;
};

/// Changes a gather of the tensor as the folder has it into one of the canonical tensor.
/// Errors: invalid_file for a shape that contradicts config.json.
using Transform = Result<void> (*)(const Dimensions& dimensions, Gather& gather);

enum class AppliesTo : std::uint8_t { every_layer, full_attention_layers, recurrent_layers };

/// A tensor of the folder and its canonical name, both below the prefix of their layer.
/// `*` stands for each expert in turn; their tensors are stacked.
struct TensorRule {
  std::string_view from;
  std::string_view to;
  Transform transform = nullptr;
  AppliesTo applies_to = AppliesTo::every_layer;
  bool is_required = true;  // by some rule for the same `to`
  std::optional<ExpertLayout> only_with{};
};

/// One row of the list in families.cpp.
struct Family {
  std::array<std::string_view, 2> model_types;  // of config.json
  std::string_view architecture;                // general.architecture
  /// What config.json may leave out, as JSON: the defaults of the class in transformers.
  std::string_view defaults = "{}";
  std::array<std::span<const KeyRule>, 2> keys;
  /// Keys that need more than copying a number.
  Result<void> (*add_keys)(const Config& config, const Dimensions& dimensions,
                           formats::Metadata& metadata);
  std::span<const TensorRule> ends;  // outside of layers
  std::array<std::span<const TensorRule>, 4> layer;
  std::span<const TensorRule> draft;  // of the multi-token-prediction head, outside of its layer
};

/// Errors: unsupported, with the list of known ones.
Result<const Family*> find_family(const Config& config);

/// By general.architecture; nullptr for one that has no folders.
const Family* find_family_of_architecture(std::string_view architecture);

}  // namespace hearth::model
