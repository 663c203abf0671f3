#pragma once

#include <cstdint>

namespace hearth {

/// Index of a token in a vocabulary; a type of its own, so that a token is never passed as a block
/// or a position.
enum class TokenId : std::int32_t {};

}  // namespace hearth
