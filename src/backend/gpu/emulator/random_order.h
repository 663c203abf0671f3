#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <utility>

namespace hearth::backend::gpu::emulator {

/// A number in which every bit depends on every bit of x. Source: Steele et al. 2014,
/// "Fast splittable pseudorandom number generators", the finaliser of SplitMix64.
[[nodiscard]] constexpr std::uint64_t scramble(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Puts `items` into an order that `key` chooses; 0 leaves them as they are.
template <class T>
void put_in_random_order(std::span<T> items, std::uint64_t key) {
  if (key == 0) {
    return;
  }
  for (std::size_t n = items.size(); n > 1; --n) {
    key = scramble(key);
    std::swap(items[n - 1], items[key % n]);
  }
}

/// The order in which n threadgroups start, too many for a list: a walk with a step that has no
/// divisor in common with n, so that it meets each once. Seed 0 is the natural order.
class GroupOrder {
 public:
  GroupOrder(std::uint64_t n, std::uint64_t seed) : n_(n) {
    if (seed != 0) {
      start_ = scramble(seed) % n;
      step_ = scramble(start_ ^ seed) % n;
      while (std::gcd(step_, n) != 1) {
        ++step_;
      }
    }
  }
  [[nodiscard]] std::uint64_t at(std::uint64_t i) const { return (start_ + i * step_) % n_; }

 private:
  std::uint64_t n_;
  std::uint64_t start_ = 0;
  std::uint64_t step_ = 1;
};

}  // namespace hearth::backend::gpu::emulator
