#pragma once
/// What threadgroups and simdgroups take of the strips of a launch (kernels/strips.h).

#include "backend/gpu/dialect/dialect.h"
#include "backend/gpu/kernels/strip_tile.h"

namespace hearth::backend::gpu {

/// What a threadgroup multiplies.
struct StripGroup {
  u32 part;
  u32 begin;  // strips [begin, end) of the part
  u32 end;
  u32 n_blocks;  // of 256 weights in a row of the matrix
  u32 n_units;   // blocks of a strip: of a pair those of the gate, then those of the other
};

DEVICE_FN StripGroup strip_group(PARAMS(StripParams) p, u32 group) {
  StripGroup result;
  result.part = 0;
  u32 skipped = 0;
  UNROLL for (u32 i = 0; i + 1 < STRIP_PARTS; ++i) {
    if (group >= p.group_end[i]) {
      result.part = i + 1;
      skipped = p.group_end[i];
    }
  }
  const u32 strip_rows = p.type[result.part] == STRIP_F32 ? STRIP_FLOAT_ROWS : STRIP_ROWS;
  const u32 per_group = p.group_strips[result.part];
  result.begin = (group - skipped) * per_group;
  result.end =
      min_u32(result.begin + per_group, (p.n_out[result.part] + strip_rows - 1u) / strip_rows);
  result.n_blocks = p.n / 256;
  result.n_units = p.is_pair != 0u ? 2 * result.n_blocks : result.n_blocks;
  return result;
}

/// A block of the threadgroup's strips, or of rows of codes.
struct StripItem {
  u32 strip;
  u32 unit;
};

/// The first of a simdgroup: where a strip has few blocks, teams of simdgroups take strips in turn,
/// and each has the same block of all of its team's.
DEVICE_FN StripItem first_item(u32 begin, u32 teams, u32 simdgroup, u32 n_units) {
  StripItem result = {begin, simdgroup};
  if (n_units < STRIP_SIMDGROUPS) {
    const u32 team = n_units == 8u ? simdgroup / 8 : simdgroup / n_units;
    result.strip = team < teams ? begin + team : ~0u;
    result.unit = simdgroup - team * n_units;
  }
  return result;
}

DEVICE_FN StripItem next_item(StripItem item, u32 teams, u32 simdgroup, u32 n_units) {
  StripItem result = {item.strip + teams, item.unit};
  if (n_units > STRIP_SIMDGROUPS) {
    const bool ends = item.unit + STRIP_SIMDGROUPS >= n_units;
    result.strip = ends ? item.strip + 1u : item.strip;
    result.unit = ends ? simdgroup : item.unit + STRIP_SIMDGROUPS;
  }
  return result;
}

/// A matrix as its tiles are found.
struct StripMatrix {
  u32 tile_bytes;
  u32 strip_bytes;
};

DEVICE_FN StripMatrix strip_matrix(u32 type, u32 n_blocks) {
  const u32 tile_bytes = strip_tile_bytes(type);
  const StripMatrix matrix = {tile_bytes, n_blocks * tile_bytes};
  return matrix;
}

/// Whether an item is of the second matrix of a pair.
DEVICE_FN bool is_second(StripItem item, THREAD_REF(const StripGroup) group) {
  return item.unit >= group.n_blocks;
}

/// Its block of a row of the matrix.
DEVICE_FN u32 item_block(StripItem item, THREAD_REF(const StripGroup) group) {
  return is_second(item, group) ? item.unit - group.n_blocks : item.unit;
}

/// The byte of its matrix at which its tile begins.
DEVICE_FN u32 item_tile(StripItem item, THREAD_REF(const StripGroup) group, StripMatrix matrix) {
  return item.strip * matrix.strip_bytes + item_block(item, group) * matrix.tile_bytes;
}

/// A part's matrix.
DEVICE_FN DEVICE(const u8)
    strip_weight(u32 part, DEVICE(const u8) weight0, DEVICE(const u8) weight1,
                 DEVICE(const u8) weight2, DEVICE(const u8) weight3) {
  return part < 2u ? (part == 0u ? weight0 : weight1) : (part == 2u ? weight2 : weight3);
}

/// Where a part's results go.
DEVICE_FN DEVICE(f32)
    strip_output(u32 part, DEVICE(f32) y0, DEVICE(f32) y1, DEVICE(f32) y2, DEVICE(f32) y3) {
  return part < 2u ? (part == 0u ? y0 : y1) : (part == 2u ? y2 : y3);
}

}  // namespace hearth::backend::gpu
