/// dialect/tiles.h on Metal: four 8 x 8 matrices a tile.

#include <metal_simdgroup_matrix>

struct TileA {
  simdgroup_half8x8 parts[4];
};
struct TileB {
  simdgroup_half8x8 parts[4];
};
struct TileSum {
  simdgroup_float8x8 parts[4];
};

DEVICE_FN void tile_zero(THREAD_REF(TileSum) sum) {
  UNROLL for (u32 i = 0; i < 4; ++i) {
    sum.parts[i] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  }
}
DEVICE_FN void tile_load(THREAD_REF(TileA) a, SHARED(const f16) from, u32 stride) {
  UNROLL for (u32 i = 0; i < 4; ++i) {
    simdgroup_load(a.parts[i], from + (i / 2) * 8 * stride + (i % 2) * 8, stride);
  }
}
DEVICE_FN void tile_load_transposed(THREAD_REF(TileB) b, SHARED(const f16) from, u32 stride) {
  UNROLL for (u32 i = 0; i < 4; ++i) {
    simdgroup_load(b.parts[i], from + (i % 2) * 8 * stride + (i / 2) * 8, stride, ulong2(0), true);
  }
}
DEVICE_FN void tile_multiply_add(THREAD_REF(TileSum) sum, THREAD_REF(const TileA) a,
                                 THREAD_REF(const TileB) b) {
  UNROLL for (u32 i = 0; i < 2; ++i) {
    UNROLL for (u32 j = 0; j < 2; ++j) {
      UNROLL for (u32 k = 0; k < 2; ++k) {
        simdgroup_multiply_accumulate(sum.parts[2 * i + j], a.parts[2 * i + k], b.parts[2 * k + j],
                                      sum.parts[2 * i + j]);
      }
    }
  }
}
DEVICE_FN void tile_store(SHARED(f32) to, u32 stride, THREAD_REF(const TileSum) sum) {
  UNROLL for (u32 i = 0; i < 4; ++i) {
    simdgroup_store(sum.parts[i], to + (i / 2) * 8 * stride + (i % 2) * 8, stride);
  }
}
