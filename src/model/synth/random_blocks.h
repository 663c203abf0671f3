#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/dtype.h"

namespace hearth::model {

struct BlockScales;

/// 64 well mixed bits of a number. Source: Steele, Lea and Flood 2014, "Fast splittable
/// pseudorandom number generators" (the finalizer of SplitMix64).
[[nodiscard]] constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Random weights of one type, made as blocks at about the speed of memory: codes are random bits,
/// and only the scales in each block are chosen, from 256 values. Immutable, hence thread-safe.
class RandomBlocks {
 public:
  /// Whether blocks of this type can be made.
  static bool can_make(DType dtype);

  /// can_make(dtype).
  explicit RandomBlocks(DType dtype);

  /// Fills whole blocks. Their weights have a mean of about zero and about the given standard
  /// deviation; the bytes are a function of the arguments.
  void fill(std::uint64_t key, float deviation, std::span<std::byte> blocks) const;

 private:
  void fill_at_scale(std::uint64_t key, float scale, std::span<std::byte> blocks) const;
  [[nodiscard]] float measured_deviation() const;

  const BlockScales* scales_;
  float unit_deviation_ = 0;  // of the weights when the scale is 1
};

}  // namespace hearth::model
