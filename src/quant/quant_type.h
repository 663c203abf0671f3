#pragma once
/// What a struct of quant/types/ must offer to be a tensor type.

#include <concepts>
#include <span>
#include <type_traits>

#include "quant/integer_form.h"
#include "quant/quant_info.h"

namespace hearth::quant {

/// A type states its name, number and sizes (`info`) and the layout of one block (`Block`, whose
/// bytes are exactly those in a file).
template <class T>
concept QuantType = requires {
  { T::info } -> std::same_as<const QuantInfo&>;
  requires std::is_trivially_copyable_v<typename T::Block>;
  requires sizeof(typename T::Block) == T::info.block_bytes;
};

/// A type whose blocks are integers times scales states how (`integers`) and splits a block into
/// them. `to_integers` runs in the inner loop of matrix products: inline and free of branches. It
/// writes only the parts of the IntegerBlock that the type has.
template <class T>
concept HasIntegerForm =
    QuantType<T> && requires(const typename T::Block& block, IntegerBlock& integers) {
      { T::integers } -> std::same_as<const IntegerLayout&>;
      { T::to_integers(block, integers) } -> std::same_as<void>;
      requires T::info.block_weights <= max_integer_block;
      requires T::info.block_weights % T::integers.unit == 0;
    };

/// A type without an integer form decodes a block itself.
template <class T>
concept HasOwnDecode = QuantType<T> && requires(const typename T::Block& block,
                                                std::span<float, T::info.block_weights> weights) {
  { T::decode(block, weights) } -> std::same_as<void>;
};

/// Types whose weights are floats. The others are plain integers, which no tensor of weights uses.
template <class T>
concept FloatDecodable = HasIntegerForm<T> || HasOwnDecode<T>;

}  // namespace hearth::quant
