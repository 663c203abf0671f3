#pragma once
/// What a host hands to kernels that rotate.

#include <vector>

#include "backend/gpu/kernels/rope.h"
#include "graph/ops/rope.h"

namespace hearth::backend::gpu {

inline RopePairs rope_pairs(const graph::RopeParams& params) {
  const bool is_adjacent = params.pairing == graph::RopePairing::adjacent;
  const auto n_rot = static_cast<u32>(params.n_rot);
  return {n_rot, is_adjacent ? 2u : 1u, is_adjacent ? 1u : n_rot / 2};
}

/// [rows, n_rot]: cosines and sines of each row's position.
inline std::vector<float> rope_angles(const graph::RopeParams& params,
                                      const std::vector<std::int32_t>& positions) {
  const graph::RopeTable table(params, {});
  const auto n_rot = static_cast<std::size_t>(params.n_rot);
  std::vector<float> angles(positions.size() * n_rot);
  for (std::size_t row = 0; row < positions.size(); ++row) {
    float* cosines = angles.data() + row * n_rot;
    table.angles(positions[row], cosines, cosines + n_rot / 2);
  }
  return angles;
}

}  // namespace hearth::backend::gpu
