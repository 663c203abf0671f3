#include "sampling/random.h"

#include <random>

#include "sampling/philox.h"

namespace hearth::sampling {

double uniform(std::uint64_t seed, std::int64_t position, Purpose purpose) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  const auto place = static_cast<std::uint64_t>(position);
  const PhiloxCounter words = philox4x32_10(
      {low(place), high(place), static_cast<std::uint32_t>(purpose), 0}, {low(seed), high(seed)});
  const std::uint64_t bits = (std::uint64_t{words[0]} << 32) | words[1];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

std::uint64_t random_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

}  // namespace hearth::sampling
