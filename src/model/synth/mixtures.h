#pragma once
/// Which tensor gets which type when a whole model is stored as "Q4_K_M".

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "tensor/dtype.h"

namespace hearth::model {

/// The layers, of all that a model has, in which a rule holds.
using LayerChoice = bool (*)(std::int64_t layer, std::int64_t n_layers);

/// An exception from the type of most tensors.
struct TypeRule {
  std::string_view role;  // "attn_v" of "blk.7.attn_v.weight"
  LayerChoice applies = nullptr;
  DType dtype{};
};

/// The types of all matrices; vectors are always F32.
/// Source: the mixtures that llama.cpp's quantizer makes without an importance matrix, for models
/// with at least 4 query heads per key/value head, as all in synth/shapes.cpp.
struct Mixture {
  std::string_view name;
  std::uint32_t file_type = 0;  // general.file_type
  DType base{};
  DType head{};  // of output.weight, or of the embedding table when it is the head too
  std::array<TypeRule, 6> rules{};  // the first that fits counts

  /// Of the matrix `role` of `layer`.
  [[nodiscard]] DType layer_type(std::string_view role, std::int64_t layer,
                                 std::int64_t n_layers) const;
};

/// By file_type.
std::span<const Mixture> all_mixtures();

/// Errors: not_found, with the list of known ones.
Result<const Mixture*> find_mixture(std::string_view name);

}  // namespace hearth::model
