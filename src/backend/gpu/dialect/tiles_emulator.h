#pragma once
/// dialect/tiles.h for the emulator: lane l holds elements 8l ... 8l + 7 of the tile in row order.

#include "backend/gpu/dialect/emulator.h"

namespace hearth::backend::gpu {

struct TileA {
  f32 elements[8];
};
struct TileB {
  f32 elements[8];
};
struct TileSum {
  f32 elements[8];
};

namespace emulator {
/// The row and first column of what the current lane holds.
inline u32 tile_row() {
  return current_lane->position.lane / 2;
}
inline u32 tile_column() {
  return current_lane->position.lane % 2 * 8;
}

/// Loads come to the same place together, and no lane may load what another has still to store.
inline void check_tile(u32 stride, Site where) {
  if (stride % 8 != 0) {
    fault_tile_stride(stride, where);
  }
  simdgroup_barrier(where);
}

/// What a lane shows the others in tile_multiply_add().
struct TileOperands {
  f32* sum;
  const f32* a;
  const f32* b;
};

inline void multiply_tiles(const TileOperands* const* lanes) {
  for (u32 i = 0; i < 16; ++i) {
    for (u32 j = 0; j < 16; ++j) {
      f32& sum = lanes[2 * i + j / 8]->sum[j % 8];
      for (u32 k = 0; k < 16; ++k) {
        sum = std::fma(lanes[2 * i + k / 8]->a[k % 8], lanes[2 * k + j / 8]->b[j % 8], sum);
      }
    }
  }
}
}  // namespace emulator

DEVICE_FN void tile_zero(THREAD_REF(TileSum) sum) {
  std::fill_n(sum.elements, 8, 0.0f);
}

DEVICE_FN void tile_load(THREAD_REF(TileA) a, SHARED(const f16) from, u32 stride, SITE) {
  emulator::check_tile(stride, where);
  for (u32 n = 0; n < 8; ++n) {
    const u32 offset = emulator::tile_row() * stride + emulator::tile_column() + n;
    a.elements[n] = to_f32(from[{offset, where}]);
  }
}

DEVICE_FN void tile_load_transposed(THREAD_REF(TileB) b, SHARED(const f16) from, u32 stride, SITE) {
  emulator::check_tile(stride, where);
  for (u32 n = 0; n < 8; ++n) {
    const u32 offset = (emulator::tile_column() + n) * stride + emulator::tile_row();
    b.elements[n] = to_f32(from[{offset, where}]);
  }
}

DEVICE_FN void tile_multiply_add(THREAD_REF(TileSum) sum, THREAD_REF(const TileA) a,
                                 THREAD_REF(const TileB) b, SITE) {
  const emulator::TileOperands operands{sum.elements, a.elements, b.elements};
  emulator::collective(&operands, where,
                       [](const emulator::TileOperands* const* lanes, auto* /*unused*/) {
                         emulator::multiply_tiles(lanes);
                       });
}

DEVICE_FN void tile_store(SHARED(f32) to, u32 stride, THREAD_REF(const TileSum) sum, SITE) {
  emulator::check_tile(stride, where);
  for (u32 n = 0; n < 8; ++n) {
    to[{emulator::tile_row() * stride + emulator::tile_column() + n, where}] = sum.elements[n];
  }
}

}  // namespace hearth::backend::gpu
