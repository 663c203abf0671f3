#pragma once
/// SHA-256 of a few bytes, for comparing with published checksums. Source: FIPS 180-4.

#include <string>

#include "base/bytes.h"

namespace hearth::quant {

/// Lower-case hexadecimal, 64 digits.
std::string sha256(Bytes message);

}  // namespace hearth::quant
