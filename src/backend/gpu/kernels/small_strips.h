#pragma once
/// Strips of types with blocks of 32 weights (kernels/small_tile.h) for several rows of the step.
/// Of many strips simdgroups have some of their own. Of few, what tiles say would be too much to
/// lie about: a chain of sums passes from one simdgroup to the next instead. Simdgroup s of a team
/// has tile s of every strip of the team, and in step t goes on with the chains of its strip t - s;
/// of rows of more than STRIP_SIMDGROUPS tiles also with tiles s + STRIP_SIMDGROUPS and so on.

#include "backend/gpu/kernels/small_tile.h"
#include "backend/gpu/kernels/strip_group.h"

namespace hearth::backend::gpu {

/// Whether simdgroups have strips of their own: where they would have to wait for each other more
/// than once.
DEVICE_FN bool owns_strips(THREAD_REF(const StripGroup) group) {
  const u32 n_strips = group.end - group.begin;
  return group.n_blocks % 2 == 0u && n_strips > 2u && n_strips * group.n_units > STRIP_SIMDGROUPS;
}

/// Words from one row of n_blocks blocks of codes to the next.
DEVICE_FN u32 small_row_words(u32 n_blocks) {
  return n_blocks * STRIP_BLOCK_WORDS + SMALL_ROW_GAP;
}

/// What a simdgroup does in a step: goes on with a strip's chains over tile `stage` of its rows.
struct ChainItem {
  u32 step;  // ~0: nothing is left to do
  u32 stage;
};

/// Strips of a simdgroup's team, of a pair those of both matrices in turn.
struct ChainTeam {
  u32 team;
  u32 n_teams;
  u32 n_stages;  // tiles of a row
  u32 n_kinds;   // matrices
  u32 n_chains;  // strips
};

DEVICE_FN ChainTeam chain_team(THREAD_REF(const StripGroup) group, bool is_pair, u32 simdgroup) {
  ChainTeam result;
  result.n_stages = group.n_blocks;
  result.n_teams = max_u32(STRIP_SIMDGROUPS / group.n_blocks, 1u);
  result.team = group.n_blocks < STRIP_SIMDGROUPS ? simdgroup / group.n_blocks : 0u;
  result.n_kinds = is_pair ? 2u : 1u;
  const u32 n_strips = group.end - group.begin;
  result.n_chains = 0;
  if (result.team < min_u32(result.n_teams, n_strips)) {
    result.n_chains =
        (n_strips - result.team + result.n_teams - 1u) / result.n_teams * result.n_kinds;
  }
  return result;
}

DEVICE_FN ChainItem first_chain_item(THREAD_REF(const ChainTeam) team, u32 simdgroup) {
  const u32 stage = simdgroup - team.team * team.n_stages;
  const ChainItem result = {team.n_chains == 0u || stage >= team.n_stages ? ~0u : stage, stage};
  return result;
}

DEVICE_FN ChainItem next_chain_item(ChainItem item, THREAD_REF(const ChainTeam) team,
                                    u32 simdgroup) {
  ChainItem next = item;
  const u32 end = team.n_chains + team.n_stages - 1u;
  bool is_found = false;
  while (!is_found) {
    next.stage += STRIP_SIMDGROUPS;
    if (next.stage >= team.n_stages) {
      next.stage = simdgroup - team.team * team.n_stages;
      next.step += 1u;
    }
    is_found =
        next.step >= end || (next.step >= next.stage && next.step - next.stage < team.n_chains);
  }
  next.step = next.step >= end ? ~0u : next.step;
  return next;
}

/// Where an item's strip begins among the rows of its matrix.
DEVICE_FN u32 chain_strip(ChainItem item, THREAD_REF(const ChainTeam) team, u32 begin) {
  return begin + team.team + (item.step - item.stage) / team.n_kinds * team.n_teams;
}

DEVICE_FN bool is_of_second(ChainItem item, THREAD_REF(const ChainTeam) team) {
  return (item.step - item.stage) % team.n_kinds != 0u;
}

/// format_chain_multiply: a tile times the lane's column of codes: sums of each run, in the order
/// of sums of a tile. Parts of the tile make room for those of the one at `next`.
#define SMALL_CHAIN_MULTIPLY(format)                                                               \
  DEVICE_FN void format##_chain_multiply(u32 type, THREAD_REF(StripTile) tile, bool has_next,      \
                                         DEVICE(const u8) next, SHARED(const u32) codes, u32 lane, \
                                         THREAD(f32) sums, THREAD(u32) scales) {                   \
    const u32x4 levels = small_levels(type);                                                       \
    UNROLL for (u32 i = 0; i < SMALL_RUNS; ++i) {                                                  \
      const u32x2 x = small_run_words(codes, i, lane);                                             \
      const u32x4 run = format##_run(tile, i, levels);                                             \
      if (has_next && format##_ends_piece(i)) {                                                    \
        load_small_piece(next, small_head(type), format##_piece_of(i), lane, tile);                \
      }                                                                                            \
      i32 products[4] = {0, 0, 0, 0};                                                              \
      add_tile_product_i8(products, run, x.x, x.y, lane);                                          \
      UNROLL for (u32 j = 0; j < 4; ++j) {                                                         \
        sums[4 * i + j] = f32(products[j]);                                                        \
      }                                                                                            \
    }                                                                                              \
    scales[0] = scale_halves(type, tile.factor[0]);                                                \
    scales[1] = scale_halves(type, tile.factor[1]);                                                \
    if (has_next) {                                                                                \
      load_small_scales(type, next, lane, tile);                                                   \
    }                                                                                              \
  }

SMALL_CHAIN_MULTIPLY(q8_0)
SMALL_CHAIN_MULTIPLY(four_bits)

/// The next links of the lane's four chains; `x_scales` [SMALL_RUNS][n_rows] are of the tile's
/// block.
DEVICE_FN void add_small_links(u32 type, THREAD(const f32) sums, THREAD(const u32) scales,
                               SHARED(const f32) x_scales, u32 n_rows, u32 lane,
                               THREAD(f32) results) {
  u32 columns[2];
  UNROLL for (u32 c = 0; c < 2; ++c) {
    columns[c] = min_u32(2 * (lane % 4) + c, n_rows - 1u);
  }
  UNROLL for (u32 i = 0; i < SMALL_RUNS; ++i) {
    f32 x_scale[2];
    UNROLL for (u32 c = 0; c < 2; ++c) {
      x_scale[c] = x_scales[i * n_rows + columns[c]];
    }
    UNROLL for (u32 r = 0; r < 2; ++r) {
      const u32 both = shuffle(scales[r], lane / 4 * 4 + i / 2);
      const f32 scale = i % 2 == 0u ? first_scale(type, both) : second_scale(type, both);
      UNROLL for (u32 c = 0; c < 2; ++c) {
        results[2 * r + c] =
            fma_f32(scale * x_scale[c], sums[4 * i + 2 * r + c], results[2 * r + c]);
      }
    }
  }
}

/// Result j of a lane, in the order of sums of a tile.
struct ChainPlace {
  u32 column;
  u64 to;  // in y
  bool is_stored;
};

DEVICE_FN ChainPlace chain_place(PARAMS(StripParams) p, u32 part, u32 strip, u32 first_step_row,
                                 u32 n_rows, u32 lane, u32 j) {
  ChainPlace place;
  place.column = 2 * (lane % 4) + j % 2;
  const u32 output = strip * STRIP_ROWS + lane / 4 + 8 * (j / 2);
  place.to = u64(first_step_row + place.column) * p.n_out[part] + output;
  place.is_stored = place.column < n_rows && output < p.n_out[part];
  return place;
}

/// What results wait for: asked for early.
struct ChainEnd {
  f32 row_gate[4];
  f32 residual[4];
};

DEVICE_FN ChainEnd chain_end(PARAMS(StripParams) p, u32 part, u32 strip, u32 first_step_row,
                             u32 n_rows, u32 lane, DEVICE(const f32) row_gate,
                             DEVICE(const f32) residual) {
  ChainEnd end;
  UNROLL for (u32 j = 0; j < 4; ++j) {
    const ChainPlace place = chain_place(p, part, strip, first_step_row, n_rows, lane, j);
    end.row_gate[j] = 0.0f;
    end.residual[j] = 0.0f;
    if (p.has_row_gate != 0u && place.is_stored) {
      end.row_gate[j] = row_gate[first_step_row + place.column];
    }
    if (p.has_residual != 0u && part == 0u && place.is_stored) {
      end.residual[j] = residual[place.to];
    }
  }
  return end;
}

DEVICE_FN void store_chains(PARAMS(StripParams) p, u32 part, u32 strip, u32 first_step_row,
                            u32 n_rows, u32 lane, THREAD_REF(const ChainEnd) end,
                            THREAD(const f32) results, DEVICE(f32) y) {
  UNROLL for (u32 j = 0; j < 4; ++j) {
    const ChainPlace place = chain_place(p, part, strip, first_step_row, n_rows, lane, j);
    f32 result = results[j];
    if (p.has_row_gate != 0u) {
      result = result * activate_f32(p.row_activation, end.row_gate[j]);
    }
    if (p.has_residual != 0u && part == 0u) {
      result = result + end.residual[j];
    }
    if (place.is_stored) {
      y[place.to] = result;
    }
  }
}

/// All strips of a threadgroup, whose first tiles are in `tile`. codes [rows][small_row_words],
/// x_scales [blocks][SMALL_RUNS][rows].
DEVICE_FN void small_strips(PARAMS(StripParams) p, u32 type, THREAD_REF(const StripGroup) group,
                            DEVICE(const u8) first, DEVICE(const u8) second, u32 first_step_row,
                            u32 n_rows, u32 simdgroup, u32 lane, SHARED(const u32) codes,
                            SHARED(const f32) x_scales, SHARED(f32) work,
                            DEVICE(const f32) row_gate, DEVICE(const f32) residual, DEVICE(f32) y,
                            THREAD_REF(StripTile) tile) {
  const ChainTeam team = chain_team(group, p.is_pair != 0u, simdgroup);
  const StripMatrix matrix = strip_matrix(type, group.n_blocks);
  const u32 n_pairs = (n_rows + 1u) / 2;
  SHARED(f32) links = work + 4 * (lane / 4 * n_pairs + lane % 4);
  SHARED(const u32)
  column_codes = codes + min_u32(lane / 4, n_rows - 1u) * small_row_words(group.n_blocks);
  const u32 n_strips = group.end - group.begin;
  const u32 n_steps =
      (n_strips + team.n_teams - 1u) / team.n_teams * team.n_kinds + team.n_stages - 1u;
  ChainItem item = first_chain_item(team, simdgroup);
  ChainItem next = item;
  bool is_multiplied = false;  // of `item` alone the links are left to do
  f32 sums[4 * SMALL_RUNS];
  u32 scales[2] = {0, 0};
  f32 gates[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  ChainEnd end = {{0.0f, 0.0f, 0.0f, 0.0f}, {0.0f, 0.0f, 0.0f, 0.0f}};
  for (u32 step = 0; step < n_steps; ++step) {
    bool goes_on = true;
    while (goes_on) {
      const bool is_last = item.stage + 1u == team.n_stages;
      const u32 strip = chain_strip(item, team, group.begin);
      if (item.step != ~0u && !is_multiplied && (step == 0u || item.step == step)) {
        if (is_last) {
          end = chain_end(p, group.part, strip, first_step_row, n_rows, lane, row_gate, residual);
        }
        next = next_chain_item(item, team, simdgroup);
        const bool has_next = next.step != ~0u;
        const u32 at = has_next ? chain_strip(next, team, group.begin) * matrix.strip_bytes +
                                      next.stage * matrix.tile_bytes
                                : 0u;
        DEVICE(const u8) from = (has_next && is_of_second(next, team) ? second : first) + at;
        SHARED(const u32) block_codes = column_codes + item.stage * STRIP_BLOCK_WORDS;
        if (type == STRIP_Q8_0) {
          q8_0_chain_multiply(type, tile, has_next, from, block_codes, lane, sums, scales);
        } else {
          four_bits_chain_multiply(type, tile, has_next, from, block_codes, lane, sums, scales);
        }
        is_multiplied = true;
      }
      if (item.step == step) {
        const u32 link = team.team * (team.n_stages - 1u) + item.stage;
        const u32 link_floats = SMALL_LINK_FLOATS(n_rows);
        f32 results[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        if (item.stage != 0u && lane % 4 < n_pairs) {
          const f32x4 before = load4(links + (2 * (link - 1u) + (step + 1u) % 2) * link_floats);
          results[0] = before.x;
          results[1] = before.y;
          results[2] = before.z;
          results[3] = before.w;
        }
        add_small_links(type, sums, scales, x_scales + item.stage * SMALL_RUNS * n_rows, n_rows,
                        lane, results);
        if (!is_last) {
          if (lane % 4 < n_pairs) {
            store4(links + (2 * link + step % 2) * link_floats,
                   make4(results[0], results[1], results[2], results[3]));
          }
        } else if (p.is_pair != 0u && !is_of_second(item, team)) {
          UNROLL for (u32 j = 0; j < 4; ++j) {
            gates[j] = results[j];
          }
        } else {
          if (p.is_pair != 0u) {
            UNROLL for (u32 j = 0; j < 4; ++j) {
              results[j] = activate_f32(p.activation, gates[j]) * results[j];
            }
          }
          store_chains(p, group.part, strip, first_step_row, n_rows, lane, end, results, y);
        }
        item = next;
        is_multiplied = false;
      }
      goes_on = item.step == step;
    }
    group_barrier();  // the links are there
  }
}

/// format_own_columns: the links of a tile in the lane's four chains. Parts of the tile make room
/// as in format_chain_multiply.
#define SMALL_OWN_COLUMNS(format)                                                                 \
  DEVICE_FN void format##_own_columns(u32 type, THREAD_REF(StripTile) tile, bool has_next,        \
                                      DEVICE(const u8) next, SHARED(const u32) codes,             \
                                      SHARED(const f32) x_scales, u32 n_rows, u32 lane,           \
                                      THREAD(f32) results) {                                      \
    const u32x4 levels = small_levels(type);                                                      \
    const u32 first = min_u32(2 * (lane % 4), n_rows - 1u);                                       \
    const u32 second = min_u32(2 * (lane % 4) + 1u, n_rows - 1u);                                 \
    UNROLL for (u32 pair = 0; pair < SMALL_RUNS / 2; ++pair) {                                    \
      u32 scales[2];                                                                              \
      UNROLL for (u32 r = 0; r < 2; ++r) {                                                        \
        scales[r] = shuffle(scale_halves(type, tile.factor[r]), lane / 4 * 4 + pair);             \
      }                                                                                           \
      UNROLL for (u32 i = 2 * pair; i < 2 * pair + 2; ++i) {                                      \
        const u32x2 x = small_run_words(codes, i, lane);                                          \
        const f32 x_scale[2] = {x_scales[i * n_rows + first], x_scales[i * n_rows + second]};     \
        const u32x4 run = format##_run(tile, i, levels);                                          \
        if (has_next && format##_ends_piece(i)) {                                                 \
          load_small_piece(next, small_head(type), format##_piece_of(i), lane, tile);             \
        }                                                                                         \
        i32 sums[4] = {0, 0, 0, 0};                                                               \
        add_tile_product_i8(sums, run, x.x, x.y, lane);                                           \
        UNROLL for (u32 j = 0; j < 4; ++j) {                                                      \
          const f32 scale =                                                                       \
              i % 2 == 0u ? first_scale(type, scales[j / 2]) : second_scale(type, scales[j / 2]); \
          results[j] = fma_f32(scale * x_scale[j % 2], f32(sums[j]), results[j]);                 \
        }                                                                                         \
      }                                                                                           \
    }                                                                                             \
    if (has_next) {                                                                               \
      load_small_scales(type, next, lane, tile);                                                  \
    }                                                                                             \
  }

SMALL_OWN_COLUMNS(q8_0)
SMALL_OWN_COLUMNS(four_bits)

DEVICE_FN void own_columns(u32 type, THREAD_REF(StripTile) tile, bool has_next,
                           DEVICE(const u8) next, SHARED(const u32) codes,
                           SHARED(const f32) x_scales, u32 n_rows, u32 lane, THREAD(f32) results) {
  if (type == STRIP_Q8_0) {
    q8_0_own_columns(type, tile, has_next, next, codes, x_scales, n_rows, lane, results);
  } else {
    four_bits_own_columns(type, tile, has_next, next, codes, x_scales, n_rows, lane, results);
  }
}

/// The simdgroup's own strips of a threadgroup, whose first two tiles are in `tile` and `second`.
DEVICE_FN void own_strips(PARAMS(StripParams) p, u32 type, THREAD_REF(const StripGroup) group,
                          DEVICE(const u8) weight, DEVICE(const u8) other, u32 first_step_row,
                          u32 n_rows, u32 simdgroup, u32 lane, SHARED(const u32) codes,
                          SHARED(const f32) x_scales, DEVICE(const f32) row_gate,
                          DEVICE(const f32) residual, DEVICE(f32) y, THREAD_REF(StripTile) tile,
                          THREAD_REF(StripTile) second) {
  const StripMatrix matrix = strip_matrix(type, group.n_blocks);
  SHARED(const u32)
  column_codes = codes + min_u32(lane / 4, n_rows - 1u) * small_row_words(group.n_blocks);
  for (u32 strip = group.begin + simdgroup; strip < group.end; strip += STRIP_SIMDGROUPS) {
    ChainEnd end = {{0.0f, 0.0f, 0.0f, 0.0f}, {0.0f, 0.0f, 0.0f, 0.0f}};
    f32 results[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    f32 gates[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (u32 unit = 0; unit < group.n_units; unit += 2) {
      const u32 block = unit < group.n_blocks ? unit : unit - group.n_blocks;
      if (block == 0u) {  // of the gate, or of the other matrix
        UNROLL for (u32 j = 0; j < 4; ++j) {
          gates[j] = results[j];
          results[j] = 0.0f;
        }
      }
      const bool ends = unit + 2u == group.n_units;
      if (ends) {
        end = chain_end(p, group.part, strip, first_step_row, n_rows, lane, row_gate, residual);
      }
      const StripItem next = {ends ? strip + STRIP_SIMDGROUPS : strip, ends ? 0u : unit + 2u};
      const bool has_next = next.strip < group.end;
      DEVICE(const u8)
      from = (is_second(next, group) ? other : weight) + item_tile(next, group, matrix);
      SHARED(const u32) block_codes = column_codes + block * STRIP_BLOCK_WORDS;
      SHARED(const f32) block_scales = x_scales + block * SMALL_RUNS * n_rows;
      own_columns(type, tile, has_next, from, block_codes, block_scales, n_rows, lane, results);
      own_columns(type, second, has_next, from + matrix.tile_bytes, block_codes + STRIP_BLOCK_WORDS,
                  block_scales + SMALL_RUNS * n_rows, n_rows, lane, results);
    }
    if (p.is_pair != 0u) {
      UNROLL for (u32 j = 0; j < 4; ++j) {
        results[j] = activate_f32(p.activation, gates[j]) * results[j];
      }
    }
    store_chains(p, group.part, strip, first_step_row, n_rows, lane, end, results, y);
  }
}

}  // namespace hearth::backend::gpu
