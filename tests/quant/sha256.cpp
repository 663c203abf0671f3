#include "tests/quant/sha256.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/format.h"

namespace hearth::quant {
namespace {

using Words = std::array<std::uint32_t, 8>;

constexpr std::array<std::uint32_t, 64> primes{
    2,   3,   5,   7,   11,  13,  17,  19,  23,  29,  31,  37,  41,  43,  47,  53,
    59,  61,  67,  71,  73,  79,  83,  89,  97,  101, 103, 107, 109, 113, 127, 131,
    137, 139, 149, 151, 157, 163, 167, 173, 179, 181, 191, 193, 197, 199, 211, 223,
    227, 229, 233, 239, 241, 251, 257, 263, 269, 271, 277, 281, 283, 293, 307, 311};

/// The first 32 bits after the point; a double has enough of them for roots below 18.
std::uint32_t fraction_bits(double root) {
  return static_cast<std::uint32_t>((root - std::floor(root)) * 0x1p32);
}

void absorb(Words& state, const std::byte* block) {
  std::array<std::uint32_t, 64> w{};
  for (std::size_t i = 0; i < 16; ++i) {
    w[i] = __builtin_bswap32(load<std::uint32_t>(block, 4 * i));
  }
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const std::uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t t1 =
        h + s1 + ((e & f) ^ (~e & g)) + fraction_bits(std::cbrt(primes[i])) + w[i];
    const std::uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const Words added{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) {
    state[i] += added[i];
  }
}

}  // namespace

std::string sha256(Bytes message) {
  Words state;
  for (std::size_t i = 0; i < 8; ++i) {
    state[i] = fraction_bits(std::sqrt(primes[i]));
  }
  std::vector<std::byte> padded(message.begin(), message.end());
  padded.push_back(std::byte{0x80});
  padded.resize((padded.size() + 8 + 63) / 64 * 64);
  const std::uint64_t n_bits = 8 * message.size();
  store(padded.data(), __builtin_bswap64(n_bits), padded.size() - 8);
  for (std::size_t offset = 0; offset < padded.size(); offset += 64) {
    absorb(state, padded.data() + offset);
  }
  std::string hex;
  for (const std::uint32_t word : state) {
    hex += format("{:08x}", word);
  }
  return hex;
}

}  // namespace hearth::quant
