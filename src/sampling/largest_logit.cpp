#include "sampling/largest_logit.h"

#include <algorithm>
#include <array>
#include <limits>

namespace hearth::sampling {
namespace {

constexpr float limit = std::numeric_limits<float>::infinity();  // of numbers
constexpr std::size_t n_lanes = 16;
/// Logits whose largest is found before it is compared: the index then comes from one such piece.
constexpr std::size_t piece_size = 1024;

struct Piece {
  bool are_numbers;
  float largest;
};

/// No early end, and lanes that do not wait for each other: compilers make vectors of it.
Piece scan(std::span<const float> logits) {
  std::array<float, n_lanes> largest;
  largest.fill(-limit);
  std::array<int, n_lanes> wrong{};
  std::size_t i = 0;
  for (; i + n_lanes <= logits.size(); i += n_lanes) {
    for (std::size_t lane = 0; lane < n_lanes; ++lane) {
      const float logit = logits[i + lane];
      wrong[lane] |= logit < limit ? 0 : 1;
      largest[lane] = logit > largest[lane] ? logit : largest[lane];
    }
  }
  Piece piece{std::ranges::count(wrong, 0) == n_lanes, *std::ranges::max_element(largest)};
  for (; i < logits.size(); ++i) {
    piece.are_numbers = piece.are_numbers && logits[i] < limit;
    piece.largest = std::max(piece.largest, logits[i]);
  }
  return piece;
}

}  // namespace

LargestLogit largest_logit(std::span<const float> logits) {
  LargestLogit result{.logit = -limit};
  std::size_t in_piece = 0;
  for (std::size_t begin = 0; begin < logits.size(); begin += piece_size) {
    const Piece piece = scan(logits.subspan(begin, std::min(piece_size, logits.size() - begin)));
    result.are_numbers = result.are_numbers && piece.are_numbers;
    if (piece.largest > result.logit) {
      result.logit = piece.largest;
      in_piece = begin;
    }
  }
  const auto found = std::ranges::find(logits.subspan(in_piece), result.logit);
  result.index = static_cast<std::size_t>(found - logits.begin());
  return result;
}

}  // namespace hearth::sampling
