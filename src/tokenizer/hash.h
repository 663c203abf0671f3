#pragma once
/// Hashing of texts and token pairs from model files.

#include <cstddef>
#include <cstdint>
#include <random>
#include <string_view>

#include "base/bytes.h"

namespace hearth::tokenizer {

/// A hash with a secret seed, so that no file can be made whose keys all collide.
/// The seed decides only where a key is stored, never what is found.
class SeededHash {
 public:
  SeededHash() : seed_((std::uint64_t{std::random_device{}()} << 32) | std::random_device{}()) {}

  std::uint64_t operator()(std::uint64_t value) const { return fold(value ^ seed_, multiplier); }

  std::uint64_t operator()(std::string_view text) const {
    std::uint64_t hash = seed_ ^ text.size();
    std::size_t at = 0;
    for (; text.size() - at >= sizeof(std::uint64_t); at += sizeof(std::uint64_t)) {
      hash = fold(hash ^ load<std::uint64_t>(text.data(), at), multiplier);
    }
    if (at < text.size()) {
      std::uint64_t rest = 0;
      std::memcpy(&rest, text.data() + at, text.size() - at);
      hash = fold(hash ^ rest, multiplier);
    }
    return fold(hash, seed_ | 1);
  }

 private:
  __extension__ using Wide = unsigned __int128;
  static constexpr std::uint64_t multiplier = 0x9e3779b97f4a7c15u;  // 2^64 / golden ratio, odd

  static std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
    const Wide product = Wide{a} * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }

  std::uint64_t seed_;
};

}  // namespace hearth::tokenizer
