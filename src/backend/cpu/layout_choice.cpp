#include "backend/cpu/layout_choice.h"

#include <algorithm>

#include "base/format.h"

namespace hearth::backend::cpu {
namespace {

/// Of the memory that is left: a whole model may have as much in tiles, and a part of one that has
/// more.
constexpr double whole_share = 0.85;
constexpr double part_share = 0.7;

double gib(std::int64_t bytes) {
  return static_cast<double>(bytes) / (1 << 30);
}

bool are_experts(const graph::Weight& weight) {
  return weight.tensor.shape.rank() == 3;
}

/// Tiles for as much as `limit` bytes; returns their bytes.
std::int64_t choose_part(const graph::WeightTable& weights, std::int64_t limit,
                         std::vector<bool>& is_tiled) {
  std::int64_t bytes = 0;
  // Weights that have to be made take memory of our own in any case.
  for (std::size_t i = 0; i < weights.size(); ++i) {
    is_tiled[i] = weights[i].origin.make != nullptr;
    bytes += is_tiled[i] ? weights[i].n_bytes() : 0;
  }
  for (const bool experts : {false, true}) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (!is_tiled[i] && are_experts(weights[i]) == experts &&
          bytes + weights[i].n_bytes() <= limit) {
        is_tiled[i] = true;
        bytes += weights[i].n_bytes();
      }
    }
  }
  return bytes;
}

}  // namespace

LayoutChoice choose_layout(WeightLayout wanted, const graph::WeightTable& weights,
                           std::int64_t all_memory) {
  std::int64_t bytes = 0;
  std::int64_t memory = all_memory;  // less what weights that are no file's have already
  for (const graph::Weight& weight : weights) {
    bytes += weight.n_bytes();
    memory -= weight.origin.is_mapped || weight.origin.make ? 0 : weight.n_bytes();
  }
  memory = std::max<std::int64_t>(memory, 1);
  if (wanted == WeightLayout::mapped) {
    return {std::vector<bool>(weights.size(), false),
            "weights read in place from the file: as asked"};
  }
  if (wanted == WeightLayout::tiles) {
    return {std::vector<bool>(weights.size(), true),
            "weights copied into tiles of 16 rows: as asked"};
  }
  const double share = static_cast<double>(bytes) / static_cast<double>(memory);
  if (share <= whole_share) {
    return {std::vector<bool>(weights.size(), true),
            format("weights copied into tiles of 16 rows: they are {:.0f} % of {:.1f} GiB of "
                   "memory, the limit being {:.0f} %",
                   100 * share, gib(memory), 100 * whole_share)};
  }
  LayoutChoice choice{std::vector<bool>(weights.size(), false), {}};
  const std::int64_t tiled =
      choose_part(weights, static_cast<std::int64_t>(part_share * static_cast<double>(memory)),
                  choice.is_tiled);
  choice.reason = format(
      "{:.1f} of {:.1f} GiB of weights copied into tiles of 16 rows, the rest read in place from "
      "the "
      "file: they are {:.0f} % of {:.1f} GiB of memory, of which tiles may have {:.0f} %",
      gib(tiled), gib(bytes), 100 * share, gib(memory), 100 * part_share);
  return choice;
}

}  // namespace hearth::backend::cpu
