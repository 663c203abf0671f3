/// Many activation rows with types of 256 weights, by AMX: a tile instruction adds up 16 weight
/// rows x 16 activation rows x 64 elements.
///
/// It has no place for the integer scales of sub-blocks, so they go into the codes: code * scale is
/// an integer of at most 13 bits, which is split into two digits of a byte, and each digit has a
/// chain of tile operations of its own. Then isum = high * 64 + low is the exact integer of
/// quant/integer_form.h, and everything after it is the canonical chain.

#include <immintrin.h>

#include "backend/cpu/kernels/sets.h"

#define HEARTH_ISA "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma,f16c,bmi2,amx-tile,amx-int8"
#define HEARTH_LANES "backend/cpu/kernels/lanes_avx512.inl"
#define HEARTH_VNNI 1
#include "backend/cpu/kernels/target.inl"

namespace hearth::backend::cpu {
namespace {

#include "backend/cpu/kernels/matmul_integer.inl"

inline constexpr std::size_t tile_rows = 16;   // activation rows of a tile
inline constexpr std::size_t group_rows = 32;  // activation rows that meet a weight tile at once
static_assert(group_rows - 1 <= step_slack);
inline constexpr std::size_t tile_bytes = 1024;  // 16 rows of 64 bytes
inline constexpr std::size_t n_slices = 4;       // slices of 64 elements of a block
inline constexpr int digit_bits = 6;
inline constexpr int step_stride = sizeof(ActivationStep);  // from one activation row to the next

/// The digits stand in for codes, so that a tile without bias is left.
template <class Q>
inline constexpr TileShape digit_shape = [] {
  TileShape shape = shape_of<Q>;
  shape.has_bias = false;
  return shape;
}();

/// What one panel needs of one block. `rest` holds the low digits as its codes.
template <class Q>
struct Digits {
  UnpackedTile<digit_shape<Q>> rest;
  alignas(64) std::array<std::byte, n_slices * tile_bytes> high;
};

/// Sums of one group: [high, low of the first 16 rows, high, low of the others][row][weight row].
using GroupSums = std::array<std::array<std::array<std::int32_t, panel_rows>, tile_rows>, 4>;

[[HEARTH_INLINE]] inline void store_digits(Codes codes, Ints scale, std::int32_t bias,
                                           std::byte* high_out, std::byte* low_out) {
  const __m512i scales = _mm512_or_si512(_mm512_and_si512(scale.lanes, _mm512_set1_epi32(0xffff)),
                                         _mm512_maskz_slli_epi32(every_lane, scale.lanes, 16));
  const __m512i biases = _mm512_set1_epi16(static_cast<short>(bias));
  const __m512i low_byte = _mm512_set1_epi16(0xff);
  const __m512i even =
      _mm512_mullo_epi16(_mm512_sub_epi16(_mm512_and_si512(codes.bytes, low_byte), biases), scales);
  const __m512i odd =
      _mm512_mullo_epi16(_mm512_sub_epi16(_mm512_srli_epi16(codes.bytes, 8), biases), scales);
  const __m512i high =
      _mm512_or_si512(_mm512_and_si512(_mm512_srai_epi16(even, digit_bits), low_byte),
                      _mm512_slli_epi16(_mm512_srai_epi16(odd, digit_bits), 8));
  const __m512i digit = _mm512_set1_epi16((1 << digit_bits) - 1);
  const __m512i low = _mm512_or_si512(_mm512_and_si512(even, digit),
                                      _mm512_slli_epi16(_mm512_and_si512(odd, digit), 8));
  _mm512_store_si512(high_out, high);
  _mm512_store_si512(low_out, low);
}

template <class Q>
[[HEARTH_TARGET]] void unpack_digits(const std::byte* tile, Digits<Q>& out) {
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

/// A panel on its way through the blocks.
template <class Q>
struct PanelWork {
  const std::byte* tiles;
  Digits<Q>* digits;  // of the current block
  float* acc;         // [rows of whole groups][16 weight rows]
};

/// One group of activation rows with one panel.
template <class Q>
struct GroupWork {
  const Digits<Q>* digits;
  const ActivationStep* steps;
  float* acc;
};

/// Adds one block's terms to the sums of 8 activation rows of a group, from row `first` of it on.
template <class Q>
[[HEARTH_INLINE]] inline void add_eight(const GroupWork<Q>& work, const GroupSums& sums,
                                        std::size_t first) {
  const typename Unpacked<digit_shape<Q>>::Rows rows{&work.digits->rest, 0};
  const auto& high = sums[first / tile_rows * 2];
  const auto& low = sums[first / tile_rows * 2 + 1];
  unroll<8>([&](auto i) HEARTH_LAMBDA {
    const std::size_t row = first + i;
    const Ints isum = add(shift_left(load_row(high[row % tile_rows], 0), digit_bits),
                          load_row(low[row % tile_rows], 0));
    float* to = work.acc + row * panel_rows;
    store_floats(
        add_unit<Unpacked<digit_shape<Q>>>(rows, work.steps[row], 0, 0, isum, load_floats(to)), to);
  });
}

/// Brings the same 64 bytes of half of the next group's rows into the first-level cache: tile loads
/// cannot run as far ahead as vector loads do.
[[HEARTH_INLINE]] inline void prefetch_rows(const std::int8_t* codes) {
  for (std::size_t row = 0; row < group_rows / 2; ++row) {
    __builtin_prefetch(codes + row * step_stride);
  }
}

/// sums = group x panel, for one block; calls between(slice) after each slice of products, for what
/// the vector unit can do meanwhile.
template <class Q, class F>
[[HEARTH_INLINE]] inline void multiply_group(const GroupWork<Q>& work, GroupSums& sums,
                                             std::size_t half, F&& between) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  unroll<n_slices>([&](auto slice) HEARTH_LAMBDA {
    const std::int8_t* codes = work.steps->codes.data() + 64 * slice;
    prefetch_rows(codes + (group_rows + half * tile_rows) * step_stride);
    _tile_loadd(4, codes, step_stride);
    _tile_loadd(6, work.digits->high.data() + tile_bytes * slice, 64);
    _tile_dpbssd(0, 4, 6);
    _tile_loadd(7, work.digits->rest.codes.data() + tile_bytes * slice, 64);
    _tile_dpbssd(1, 4, 7);
    _tile_loadd(5, codes + tile_rows * step_stride, step_stride);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
    between(slice);
  });
  _tile_stored(0, sums[0].data(), 64);
  _tile_stored(1, sums[1].data(), 64);
  _tile_stored(2, sums[2].data(), 64);
  _tile_stored(3, sums[3].data(), 64);
}

/// One block of n panels with n_groups groups of activation rows. Each group meets all panels while
/// it is in the first-level cache; while the tile unit works on one pair, the vector unit finishes
/// the one before.
template <class Q, std::size_t n>
[[HEARTH_TARGET]] void multiply_block(const std::array<PanelWork<Q>, n>& panels,
                                      const ActivationStep* steps, std::size_t n_groups) {
  alignas(64) std::array<GroupSums, 2> sums;
  std::size_t turn = 0;
  std::array<GroupWork<Q>, 2> work;
  for (std::size_t group = 0; group < n_groups; ++group) {
    for (std::size_t i = 0; i < n; ++i) {
      work[turn] = {panels[i].digits, steps + group * group_rows,
                    panels[i].acc + group * group_rows * panel_rows};
      const std::size_t before = 1 - turn;
      if (group + i == 0) {
        multiply_group<Q>(work[turn], sums[turn], i, [](auto) {});
      } else {
        multiply_group<Q>(work[turn], sums[turn], i, [&](auto slice) HEARTH_LAMBDA {
          add_eight<Q>(work[before], sums[before], 8 * slice);
        });
      }
      turn = before;
    }
  }
  for (std::size_t row = 0; row < group_rows; row += 8) {
    add_eight<Q>(work[1 - turn], sums[1 - turn], row);
  }
}

/// n panels from weight row o on. The last group may reach beyond the last activation row, into the
/// slack after the steps and after the sums.
template <class Q, std::size_t n>
[[HEARTH_TARGET]] void multiply_panels(const MatmulTask& task, std::int64_t o) {
  constexpr std::int64_t packed_tile_bytes = Q::info.block_bytes * panel_rows;
  const auto n_groups = static_cast<std::size_t>(ceil_div(task.n_rows, group_rows));
  std::array<PanelWork<Q>, n> panels;
  for (std::size_t i = 0; i < n; ++i) {
    MatmulTask own = task;
    own.scratch +=
        static_cast<std::int64_t>(i) * panel_scratch_bytes(task.weight_row_bytes, task.n_rows);
    std::byte* scratch = after_panel(own);
    panels[i] = {panel_tiles<Q>(own, o + static_cast<std::int64_t>(i) * panel_rows),
                 as_array<Digits<Q>>(scratch), as_array<float>(scratch + unpacked_bytes)};
    std::fill_n(panels[i].acc, n_groups * group_rows * panel_rows, 0.0f);
  }
  for (std::int64_t block = 0; block < task.n_in / 256; ++block) {
    for (auto& panel : panels) {
      unpack_digits<Q>(panel.tiles + block * packed_tile_bytes, *panel.digits);
    }
    multiply_block<Q, n>(panels, task.x.steps + block * task.n_rows, n_groups);
  }
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t first = o + static_cast<std::int64_t>(i) * panel_rows;
    const std::int64_t n_out = std::min(panel_rows, task.n_out - first);
    for (std::int64_t row = 0; row < task.n_rows; ++row) {
      std::copy_n(panels[i].acc + row * panel_rows, n_out,
                  task.out + row * task.out_stride + first);
    }
  }
}

template <class Q>
[[HEARTH_TARGET]] void matmul_amx(const MatmulTask& task) {
  static_assert(Q::info.block_weights == 256 && shape_of<Q>.has_subs());
  static_assert(sizeof(Digits<Q>) <= unpacked_bytes);
  struct alignas(64) Config {
    std::uint8_t palette = 1;
    std::uint8_t start_row = 0;
    std::array<std::uint8_t, 14> reserved{};
    std::array<std::uint16_t, 16> bytes_per_row{64, 64, 64, 64, 64, 64, 64, 64};
    std::array<std::uint8_t, 16> rows{16, 16, 16, 16, 16, 16, 16, 16};
  };
  const Config config;
  _tile_loadconfig(&config);
  std::int64_t o = 0;
  for (; o + panel_rows < task.n_out; o += panels_together * panel_rows) {
    multiply_panels<Q, panels_together>(task, o);
  }
  if (o < task.n_out) {
    multiply_panels<Q, 1>(task, o);
  }
  _tile_release();
}

}  // namespace

KernelSet amx_kernels() {
  KernelSet set = avx512_vnni_kernels();
  set.name = "amx";
  const auto add = [&]<class Q>() {
    set.matmul_many[static_cast<std::size_t>(Q::info.dtype)] = matmul_amx<Q>;
  };
  quant::TypeList<quant::Q2_K, quant::Q3_K, quant::Q4_K, quant::Q5_K, quant::Q6_K,
                  quant::IQ4_XS>::for_each(add);
  return set;
}

}  // namespace hearth::backend::cpu
