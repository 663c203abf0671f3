#pragma once
/// Random numbers of a request: a function of seed, position and purpose, so that nothing else that
/// runs can change them and no state has to be rolled back.

#include <cstdint>

namespace hearth::sampling {

/// What a number is drawn for. Numbers never change meaning, so that seeds stay reproducible.
enum class Purpose : std::uint32_t {
  token = 0,
};

/// Uniform in [0, 1), a multiple of 2^-53: Philox4x32-10 with the seed as key (low word first) and
/// the counter {position low, position high, purpose, 0}; the first two words, first word on top.
[[nodiscard]] double uniform(std::uint64_t seed, std::int64_t position, Purpose purpose);

/// 64 bits from the operating system: the seed of a request that names none. Thread-safe.
[[nodiscard]] std::uint64_t random_seed();

}  // namespace hearth::sampling
