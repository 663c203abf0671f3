#pragma once
/// Philox4x32-10: 128 random bits that are a function of a counter and a key, with no state.
/// Source: Salmon, Moraes, Dror and Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3".

#include <array>
#include <cstdint>

namespace hearth::sampling {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

[[nodiscard]] constexpr PhiloxCounter philox4x32_10(PhiloxCounter counter, PhiloxKey key) {
  constexpr int n_rounds = 10;
  for (int round = 0; round < n_rounds; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {
        static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9u;  // golden ratio
    key[1] += 0xBB67AE85u;  // sqrt(3) - 1
  }
  return counter;
}

}  // namespace hearth::sampling
