/// Many activation rows by AMX: a tile instruction adds up 16 weight rows x 16 activation rows x 64
/// elements.
///
/// It has no place for the integer scales of sub-blocks. With types of 256 weights they go into the
/// codes: code * scale is an integer of at most 13 bits, which is split into two digits of a byte,
/// and each digit has a chain of tile operations of its own. Then isum = high * 256 + low is the
/// exact integer of quant/integer_form.h. With a float scale for every 32 weights a tile operation
/// is half as long. Everything after the exact integers is the canonical chain.

#include <immintrin.h>

#include "backend/cpu/kernels/sets.h"

#define HEARTH_ISA "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma,f16c,bmi2,amx-tile,amx-int8"
#define HEARTH_LANES "backend/cpu/kernels/lanes_avx512.inl"
#define HEARTH_VNNI 1
#include "backend/cpu/kernels/target.inl"

namespace hearth::backend::cpu {
namespace {

#include "backend/cpu/kernels/matmul_integer.inl"

inline constexpr std::size_t tile_rows = 16;                // activation rows of a tile
inline constexpr std::size_t tile_bytes = 1024;             // 16 rows of 64 bytes
inline constexpr int step_stride = sizeof(ActivationStep);  // from one activation row to the next
inline constexpr std::int64_t cache_line = 64;

/// Products of one tile operation: [activation row][weight row].
using TileSums = std::array<std::array<std::int32_t, panel_rows>, tile_rows>;

/// One step of n panels, which meet every group of activation rows while it is in the first-level
/// cache.
template <class Panel, std::size_t n>
struct Pass {
  std::array<const Panel*, n> panels;
  std::array<float*, n> acc;  // [rows of whole groups][16 weight rows]
  const ActivationStep* steps;
  std::int64_t n_rows;
  /// Of the next step's activations, the bytes [first, end) of every group of rows are asked for:
  /// the hardware does not foresee them.
  std::int64_t ahead_first;
  std::int64_t ahead_end;

  [[HEARTH_INLINE]] void ask_ahead(std::int64_t row) const {
    const std::byte* group = as_byte_array(steps + n_rows + row);
    for (std::int64_t at = ahead_first; at < ahead_end; at += cache_line) {
      __builtin_prefetch(group + at, 0, 2);
    }
  }
};

/// What a unit of a panel brings to the canonical chain, in registers: rows after rows meet it, and
/// with its fields in memory they would be half of all loads.
template <TileShape tile_shape>
struct Held {
  static constexpr TileShape shape = tile_shape;
  static constexpr std::size_t n_pairs = UnpackedTile<shape>::n_offset_pairs;

  struct Rows {
    Floats scale;
    Floats offset;
    std::array<Ints, n_pairs> offset_pairs;
  };

  [[HEARTH_INLINE]] static Rows load(const UnpackedTile<shape>& tile, std::size_t unit) {
    Rows rows;
    rows.scale = held(load_floats(tile.scales[unit].data()));
    if constexpr (shape.has_offset) {
      rows.offset = held(load_floats(tile.offsets[unit].data()));
    }
    unroll<n_pairs>([&](auto i) HEARTH_LAMBDA {
      rows.offset_pairs[i] = {in_register(load_row(tile.offset_pairs[i], 0).lanes)};
    });
    return rows;
  }
  [[HEARTH_INLINE]] static Floats scale(const Rows& rows, std::size_t) { return rows.scale; }
  [[HEARTH_INLINE]] static Floats offset(const Rows& rows, std::size_t) { return rows.offset; }
  [[HEARTH_INLINE]] static Ints offset_pair(const Rows& rows, std::size_t i) {
    return rows.offset_pairs[i];
  }

 private:
  [[HEARTH_INLINE]] static Floats held(Floats x) {
    return as_floats({in_register(as_ints(x).lanes)});
  }
};

/// Types of 256 weights with integer scales.
template <TileShape tile_shape>
struct Digits {
  static constexpr TileShape shape = tile_shape;
  static constexpr std::size_t group_rows = 32;  // activation rows that meet a panel at once
  static constexpr int shift = 8;                // bits of the low digit, which has no sign
  static constexpr std::size_t n_slices = 4;     // of 64 elements

  UnpackedTile<shape> rest;  // with the low digits as its codes
  alignas(64) std::array<std::byte, n_slices * tile_bytes> high;
};

/// The digits stand in for codes, so that a tile without bias is left.
template <class Q>
inline constexpr TileShape digit_shape = [] {
  TileShape shape = shape_of<Q>;
  shape.is_signed = true;
  shape.has_bias = false;
  shape.sub = shape.has_offset ? shape.sub : 32;
  return shape;
}();

[[HEARTH_INLINE]] inline void store_digits(Codes codes, Ints scale, std::int32_t bias,
                                           std::byte* high_out, std::byte* low_out) {
  constexpr __mmask64 odd_bytes = 0xaaaaaaaaaaaaaaaa;
  const __m512i scales = _mm512_or_si512(_mm512_and_si512(scale.lanes, _mm512_set1_epi32(0xffff)),
                                         _mm512_maskz_slli_epi32(every_lane, scale.lanes, 16));
  const __m512i biases = _mm512_set1_epi16(static_cast<short>(bias));
  const __m512i low_byte = _mm512_set1_epi16(0xff);
  const __m512i even =
      _mm512_mullo_epi16(_mm512_sub_epi16(_mm512_and_si512(codes.bytes, low_byte), biases), scales);
  const __m512i odd =
      _mm512_mullo_epi16(_mm512_sub_epi16(_mm512_srli_epi16(codes.bytes, 8), biases), scales);
  _mm512_store_si512(high_out, _mm512_mask_blend_epi8(odd_bytes, _mm512_srli_epi16(even, 8), odd));
  _mm512_store_si512(low_out, _mm512_mask_blend_epi8(odd_bytes, even, _mm512_slli_epi16(odd, 8)));
}

/// The one tile that a step has.
template <class Q>
[[HEARTH_TARGET, gnu::noinline]] void unpack_step(const std::byte* tile, std::int64_t /*n_tiles*/,
                                                  Digits<digit_shape<Q>>& out) {
  static constexpr TileShape shape = shape_of<Q>;
  const TileRows<Q> rows{tile, 0};
  repeat<shape.n_subs() / Tile<Q>::n_slots>([&](std::size_t group) HEARTH_LAMBDA {
    std::array<Ints, Tile<Q>::n_slots> scales;
    unroll<Tile<Q>::n_slots>([&](auto slot) HEARTH_LAMBDA {
      scales[slot] = Tile<Q>::sub_scale(rows, Tile<Q>::sub_of(group, slot));
    });
    Tile<Q>::visit(rows, group, [&](auto slot, auto quad, Codes codes) HEARTH_LAMBDA {
      const std::size_t at =
          (Tile<Q>::sub_of(group, slot) * (shape.sub / 4) + quad) * 4 * panel_rows;
      store_digits(codes, scales[slot], code_bias<Q>, out.high.data() + at,
                   out.rest.codes.data() + at);
    });
  });
  store_floats(Tile<Q>::scale(rows, 0), out.rest.scales[0].data());
  if constexpr (shape.has_offset) {
    store_floats(Tile<Q>::offset(rows, 0), out.rest.offsets[0].data());
    repeat<shape.n_subs() / 2>([&](std::size_t i) HEARTH_LAMBDA {
      store_ints(Packed<Q>::offset_pair(rows, i), out.rest.offset_pairs[i].data());
    });
  }
}

/// Products of one group of rows: high and low digits of the first 16 rows, then of the others.
using DigitSums = std::array<TileSums, 4>;

/// A group of activation rows with a panel.
template <TileShape shape>
struct DigitWork {
  const Digits<shape>* panel = nullptr;
  const ActivationStep* steps;
  float* acc;
};

/// Adds the terms of two activation rows of a group to their sums.
template <TileShape shape, std::size_t first>
[[HEARTH_INLINE]] inline void add_two(const typename Held<shape>::Rows& rows,
                                      const DigitWork<shape>& work, const DigitSums& sums) {
  const auto& high = sums[first / tile_rows * 2];
  const auto& low = sums[first / tile_rows * 2 + 1];
  unroll<2>([&](auto i) HEARTH_LAMBDA {
    constexpr std::size_t row = first + i;
    const Ints isum = add(shift_left(load_row(high[row % tile_rows], 0), Digits<shape>::shift),
                          load_row(low[row % tile_rows], 0));
    float* to = work.acc + row * panel_rows;
    store_floats(add_unit<Held<shape>>(rows, work.steps[row], 0, 0, isum, load_floats(to)), to);
  });
}

/// sums = group x panel. Calls between(place) for places 0 to 15, for what the vector unit can do
/// meanwhile: a processor whose core is shared looks ahead too little to mix by itself.
template <TileShape shape, class F>
[[HEARTH_INLINE]] inline void multiply_group(const DigitWork<shape>& work, DigitSums& sums,
                                             F&& between) {
  const std::byte* high = work.panel->high.data();
  const std::byte* low = work.panel->rest.codes.data();
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  unroll<Digits<shape>::n_slices>([&](auto slice) HEARTH_LAMBDA {
    const std::int8_t* codes = work.steps->codes.data() + 64 * slice;
    _tile_loadd(4, codes, step_stride);
    _tile_loadd(6, high + tile_bytes * slice, 64);
    _tile_dpbssd(0, 4, 6);
    between(Constant<4 * slice>{});
    _tile_loadd(7, low + tile_bytes * slice, 64);
    _tile_dpbsud(1, 4, 7);
    between(Constant<4 * slice + 1>{});
    _tile_loadd(5, codes + tile_rows * step_stride, step_stride);
    _tile_dpbssd(2, 5, 6);
    between(Constant<4 * slice + 2>{});
    _tile_dpbsud(3, 5, 7);
    between(Constant<4 * slice + 3>{});
  });
  _tile_stored(0, sums[0].data(), 64);
  _tile_stored(1, sums[1].data(), 64);
  _tile_stored(2, sums[2].data(), 64);
  _tile_stored(3, sums[3].data(), 64);
}

/// While the tile unit works on one group, the vector unit finishes the one before.
template <TileShape shape, std::size_t n>
[[HEARTH_TARGET, gnu::noinline]] void multiply_step(const Pass<Digits<shape>, n>& pass) {
  static constexpr auto group_rows = static_cast<std::int64_t>(Digits<shape>::group_rows);
  alignas(64) std::array<DigitSums, 2> sums;
  std::array<DigitWork<shape>, 2> work;
  std::size_t turn = 0;
  for (std::int64_t row = 0; row < pass.n_rows; row += group_rows) {
    pass.ask_ahead(row);
    for (std::size_t i = 0; i < n; ++i) {
      work[turn] = {pass.panels[i], pass.steps + row, pass.acc[i] + row * panel_rows};
      const std::size_t before = 1 - turn;
      if (row == 0 && i == 0) {
        multiply_group<shape>(work[turn], sums[turn], [](auto) HEARTH_LAMBDA {});
      } else {
        const auto rows = Held<shape>::load(work[before].panel->rest, 0);
        multiply_group<shape>(work[turn], sums[turn], [&](auto place) HEARTH_LAMBDA {
          add_two<shape, 2 * place>(rows, work[before], sums[before]);
        });
      }
      turn = before;
    }
  }
  const auto rows = Held<shape>::load(work[1 - turn].panel->rest, 0);
  unroll<16>([&](auto place) HEARTH_LAMBDA {
    add_two<shape, 2 * place>(rows, work[1 - turn], sums[1 - turn]);
  });
}

/// A step of a type with a float scale for every 32 weights.
template <bool with_offset>
struct ScaledRuns {
  static constexpr std::size_t group_rows = tile_rows;
  static constexpr std::size_t run = 32;                  // weights
  static constexpr std::size_t n = step_weights / run;    // runs of a step
  static constexpr std::size_t bytes = run * panel_rows;  // codes of one
  static constexpr TileShape shape{
      .block_weights = step_weights,
      .unit = run,
      .sub = run,
      .activation_block = 32,
      .has_offset = with_offset,
      .is_signed = true,
      .has_bias = false,
      .is_bias_negative = false,
  };

  UnpackedTile<shape> tile;
  std::size_t n_runs;  // fewer in the last step of a row
};

template <class Q>
[[HEARTH_TARGET, gnu::noinline]] void unpack_step(const std::byte* tiles, std::int64_t n_tiles,
                                                  ScaledRuns<shape_of<Q>.has_offset>& out) {
  static constexpr TileShape shape = shape_of<Q>;
  static constexpr std::size_t runs_per_tile = shape.n_units();
  const __m512i bias = _mm512_set1_epi8(static_cast<char>(code_bias<Q>));
  for (std::size_t i = 0; i < static_cast<std::size_t>(n_tiles); ++i) {
    const TileRows<Q> rows{tiles + i * Q::info.block_bytes * panel_rows, 0};
    repeat<runs_per_tile>([&](std::size_t run) HEARTH_LAMBDA {
      const std::size_t to = i * runs_per_tile + run;
      Tile<Q>::visit(rows, run, [&](auto, auto quad, Codes codes) HEARTH_LAMBDA {
        _mm512_store_si512(out.tile.codes.data() + (to * 8 + quad) * 4 * panel_rows,
                           _mm512_sub_epi8(codes.bytes, bias));
      });
      store_floats(Tile<Q>::scale(rows, run), out.tile.scales[to].data());
      if constexpr (shape.has_offset) {
        store_floats(Tile<Q>::offset(rows, run), out.tile.offsets[to].data());
      }
    });
  }
  out.n_runs = static_cast<std::size_t>(n_tiles) * runs_per_tile;
}

/// sums = 16 activation rows x one run of 32 weights. Four of these at a time do not wait for each
/// other.
template <std::size_t place>
[[HEARTH_INLINE]] inline void multiply_run(const std::int8_t* codes, const std::byte* weights,
                                           TileSums& sums) {
  if constexpr (place == 0) {
    _tile_zero(0);
    _tile_loadd(4, codes, step_stride);
    _tile_loadd(6, weights, 64);
    _tile_dpbssd(0, 4, 6);
    _tile_stored(0, sums.data(), 64);
  } else if constexpr (place == 1) {
    _tile_zero(1);
    _tile_loadd(5, codes, step_stride);
    _tile_loadd(7, weights, 64);
    _tile_dpbssd(1, 5, 7);
    _tile_stored(1, sums.data(), 64);
  } else if constexpr (place == 2) {
    _tile_zero(2);
    _tile_loadd(4, codes, step_stride);
    _tile_loadd(6, weights, 64);
    _tile_dpbssd(2, 4, 6);
    _tile_stored(2, sums.data(), 64);
  } else {
    _tile_zero(3);
    _tile_loadd(5, codes, step_stride);
    _tile_loadd(7, weights, 64);
    _tile_dpbssd(3, 5, 7);
    _tile_stored(3, sums.data(), 64);
  }
}

/// Sixteen activation rows with the runs of a panel's step.
template <bool with_offset>
[[HEARTH_INLINE]] inline void multiply_runs(const ScaledRuns<with_offset>& panel,
                                            const ActivationStep* steps, float* acc) {
  using Runs = ScaledRuns<with_offset>;
  alignas(64) std::array<TileSums, Runs::n> sums;
  std::array<Floats, tile_rows> totals;
  unroll<tile_rows>([&](auto i) HEARTH_LAMBDA { totals[i] = load_floats(acc + i * panel_rows); });
  const auto multiply_at = [&](auto run) HEARTH_LAMBDA {
    multiply_run<run % 4>(steps->codes.data() + run * Runs::run,
                          panel.tile.codes.data() + run * Runs::bytes, sums[run]);
  };
  const auto add_at = [&](auto run) HEARTH_LAMBDA {
    const auto rows = Held<Runs::shape>::load(panel.tile, run);
    unroll<tile_rows>([&](auto i) HEARTH_LAMBDA {
      totals[i] = add_unit<Held<Runs::shape>>(rows, steps[i], run, run * Runs::run,
                                              load_row(sums[run][i], 0), totals[i]);
    });
  };
  if (panel.n_runs == Runs::n) {
    static constexpr std::size_t ahead = 3;  // products before their sums are needed
    unroll<ahead>(multiply_at);
    unroll<Runs::n>([&](auto run) HEARTH_LAMBDA {
      if constexpr (run + ahead < Runs::n) {
        multiply_at(Constant<run + ahead>{});
      }
      add_at(run);
    });
  } else {
    unroll<Runs::n>([&](auto run) HEARTH_LAMBDA {
      if (run < panel.n_runs) {
        multiply_at(run);
        add_at(run);
      }
    });
  }
  unroll<tile_rows>([&](auto i) HEARTH_LAMBDA { store_floats(totals[i], acc + i * panel_rows); });
}

template <bool with_offset, std::size_t n>
[[HEARTH_TARGET, gnu::noinline]] void multiply_step(const Pass<ScaledRuns<with_offset>, n>& pass) {
  for (std::int64_t row = 0; row < pass.n_rows; row += tile_rows) {
    pass.ask_ahead(row);
    for (std::size_t i = 0; i < n; ++i) {
      multiply_runs(*pass.panels[i], pass.steps + row, pass.acc[i] + row * panel_rows);
    }
  }
}

/// The panels from weight row o on, up to max_panels_together. A step meets all of them before the
/// next one comes, so the activations are read once for all; what is unpacked is for two at a time.
/// The last group of rows may reach beyond the last activation row, into the slack after the steps
/// and after the sums.
template <class Q, class Panel>
[[HEARTH_TARGET]] void multiply_panels(const MatmulTask& task, std::int64_t o,
                                       std::int64_t n_panels) {
  static constexpr std::int64_t panel_tile_bytes = Q::info.block_bytes * panel_rows;
  static constexpr auto group_bytes =
      static_cast<std::int64_t>(Panel::group_rows * sizeof(ActivationStep));
  static_assert(Panel::group_rows - 1 <= step_slack && sizeof(Panel) <= unpacked_bytes);
  const std::int64_t native_bytes = native_panel_bytes(task.weight_row_bytes);
  const std::int64_t acc_floats = (task.n_rows + step_slack) * panel_rows;
  std::byte* scratch = task.scratch + panels_at_once * native_bytes;
  auto* acc = as_array<float>(scratch + panels_at_once * unpacked_bytes);
  std::array<const std::byte*, max_panels_together> tiles;
  for (std::int64_t i = 0; i < n_panels; ++i) {
    MatmulTask own = task;
    own.scratch += i * native_bytes;
    tiles[static_cast<std::size_t>(i)] = panel_tiles<Q>(own, o + i * panel_rows);
  }
  std::fill_n(acc, n_panels * acc_floats, 0.0f);
  const std::int64_t n_blocks = task.n_in / Q::info.block_weights;
  const ActivationStep* steps = task.x.steps;
  for (std::int64_t block = 0; block < n_blocks; block += blocks_per_step<Q>) {
    const std::int64_t n_here = std::min(blocks_per_step<Q>, n_blocks - block);
    const bool is_last = block + n_here == n_blocks;
    const auto multiply = [&]<std::size_t n>(std::int64_t first, Constant<n>) {
      Pass<Panel, n> pass;
      for (std::size_t i = 0; i < n; ++i) {
        const std::int64_t panel = first + static_cast<std::int64_t>(i);
        auto* unpacked = as_array<Panel>(scratch + static_cast<std::int64_t>(i) * unpacked_bytes);
        unpack_step<Q>(tiles[static_cast<std::size_t>(panel)] + block * panel_tile_bytes, n_here,
                       *unpacked);
        pass.panels[i] = unpacked;
        pass.acc[i] = acc + panel * acc_floats;
      }
      pass.steps = steps;
      pass.n_rows = task.n_rows;
      const auto ahead = [&](std::int64_t panel) {
        return is_last ? 0 : group_bytes * panel / n_panels / cache_line * cache_line;
      };
      pass.ahead_first = ahead(first);
      pass.ahead_end = ahead(first + static_cast<std::int64_t>(n));
      multiply_step(pass);
    };
    std::int64_t first = 0;
    for (; first + panels_at_once <= n_panels; first += panels_at_once) {
      multiply(first, Constant<panels_at_once>{});
    }
    if (first < n_panels) {
      multiply(first, Constant<1>{});
    }
    steps += task.n_rows;
  }
  for (std::int64_t i = 0; i < n_panels; ++i) {
    const std::int64_t first = o + i * panel_rows;
    const std::int64_t n_out = std::min(panel_rows, task.n_out - first);
    for (std::int64_t row = 0; row < task.n_rows; ++row) {
      std::copy_n(acc + i * acc_floats + row * panel_rows, n_out,
                  task.out + row * task.out_stride + first);
    }
  }
}

struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::array<std::uint8_t, 14> reserved{};
  std::array<std::uint16_t, 16> bytes_per_row{};
  std::array<std::uint8_t, 16> rows{};

  /// Tiles 0 to 3 are sums, 4 and 5 activations, 6 and 7 weights, of so many elements of k.
  explicit TileConfig(std::size_t k) {
    std::fill_n(bytes_per_row.begin(), 8, 64);
    std::fill_n(rows.begin(), 8, 16);
    bytes_per_row[4] = bytes_per_row[5] = static_cast<std::uint16_t>(k);
    rows[6] = rows[7] = static_cast<std::uint8_t>(k / 4);
  }
};

template <class Q, class Panel>
[[HEARTH_TARGET]] void matmul_amx(const MatmulTask& task) {
  const TileConfig config(Panel::shape.unit == 32 ? 32 : 64);
  _tile_loadconfig(&config);
  // Native rows have to be made tiles first, for which there is room for two panels.
  const std::int64_t most = task.is_tiled ? max_panels_together : panels_at_once;
  const std::int64_t n_panels = ceil_div(task.n_out, panel_rows);
  for (std::int64_t panel = 0; panel < n_panels; panel += most) {
    multiply_panels<Q, Panel>(task, panel * panel_rows, std::min(most, n_panels - panel));
  }
  _tile_release();
}

}  // namespace

KernelSet amx_kernels() {
  KernelSet set = avx512_vnni_kernels();
  set.name = "amx";
  set.panels_together = max_panels_together;
  quant::AllQuantTypes::for_each([&]<class Q>() {
    if constexpr (quant::HasIntegerForm<Q>) {
      auto& kernel = set.matmul_many[static_cast<std::size_t>(Q::info.dtype)];
      if constexpr (Q::info.block_weights == 256 && shape_of<Q>.has_subs()) {
        kernel = matmul_amx<Q, Digits<digit_shape<Q>>>;
      } else if constexpr (shape_of<Q>.unit == 32 && shape_of<Q>.activation_block == 32 &&
                           Q::integers.code_zero == 0) {
        kernel = matmul_amx<Q, ScaledRuns<shape_of<Q>.has_offset>>;
      }
    }
  });
  return set;
}

}  // namespace hearth::backend::cpu
