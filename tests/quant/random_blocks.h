#pragma once
/// The types that weights may have, and random blocks of each, with scales that are ordinary or
/// subnormal numbers.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "quant/quant_info.h"

namespace hearth::quant {

/// Every type whose elements are numbers that floats can hold.
std::vector<DType> decodable_types();

/// The numbers of the published decoder checksums: bytes of a linear congruential generator. The
/// scales of every eighth block are subnormal halves, the others are between 2^-3 and 2.
/// Types without a stored scale get plain random bytes.
std::vector<std::byte> random_blocks(const QuantInfo& type, std::uint32_t seed,
                                     std::size_t n_blocks);

}  // namespace hearth::quant
