#include "base/largest_value.h"

#include <algorithm>
#include <array>

namespace hearth {
namespace {

constexpr float limit = std::numeric_limits<float>::infinity();  // of numbers
constexpr std::size_t n_lanes = 16;
/// Values whose largest is found before it is compared: the index then comes from one such piece.
constexpr std::size_t piece_size = 1024;

struct Piece {
  bool are_numbers;
  float largest;
};

/// No early end, and lanes that do not wait for each other: compilers make vectors of it.
Piece scan(std::span<const float> values) {
  std::array<float, n_lanes> largest;
  largest.fill(-limit);
  std::array<int, n_lanes> wrong{};
  std::size_t i = 0;
  for (; i + n_lanes <= values.size(); i += n_lanes) {
    for (std::size_t lane = 0; lane < n_lanes; ++lane) {
      const float value = values[i + lane];
      wrong[lane] |= value < limit ? 0 : 1;
      largest[lane] = value > largest[lane] ? value : largest[lane];
    }
  }
  Piece piece{std::ranges::count(wrong, 0) == n_lanes, *std::ranges::max_element(largest)};
  for (; i < values.size(); ++i) {
    piece.are_numbers = piece.are_numbers && values[i] < limit;
    piece.largest = std::max(piece.largest, values[i]);
  }
  return piece;
}

/// What stands at an iterator, with the sign of its zero and the bits of its NaN.
LargestValue at(std::span<const float> values, std::span<const float>::iterator found) {
  return {.value = *found, .index = static_cast<std::size_t>(found - values.begin())};
}

}  // namespace

LargestValue largest_value(std::span<const float> values) {
  float largest = -limit;
  std::size_t in_piece = 0;
  for (std::size_t begin = 0; begin < values.size(); begin += piece_size) {
    const auto part = values.subspan(begin, std::min(piece_size, values.size() - begin));
    const Piece piece = scan(part);
    if (!piece.are_numbers) {
      return at(values, std::find_if(values.begin() + static_cast<std::ptrdiff_t>(begin),
                                     values.end(), [](float value) { return !(value < limit); }));
    }
    if (piece.largest > largest) {
      largest = piece.largest;
      in_piece = begin;
    }
  }
  if (values.empty()) {
    return {};
  }
  return at(values, std::find(values.begin() + static_cast<std::ptrdiff_t>(in_piece), values.end(),
                              largest));
}

}  // namespace hearth
