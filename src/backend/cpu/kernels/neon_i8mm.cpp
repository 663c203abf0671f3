/// Many activation rows by smmla, which multiplies 2 weight rows x 8 elements with 2 activation
/// rows: twice the products of sdot. Fewer rows take the kernels of neon-dotprod.

#include <span>

#include <arm_neon.h>

#include "backend/cpu/kernels/sets.h"

#define HEARTH_ISA "arch=armv8.2-a+dotprod+i8mm"
#define HEARTH_LANES "backend/cpu/kernels/lanes_neon.inl"
#define HEARTH_DOTPROD 1
#include "backend/cpu/kernels/target.inl"

namespace hearth::backend::cpu {
namespace {

#include "backend/cpu/kernels/matmul_integer.inl"

// A micro-tile is 8 weight rows x 4 activation rows: 8 sums, 8 scaled sums and the operands fit 32
// registers; its 8 float sums pass through memory.
inline constexpr std::size_t n_weight_pairs = 4;
inline constexpr std::size_t n_row_pairs = 2;
inline constexpr std::size_t tile_rows = 2 * n_row_pairs;
static_assert(tile_rows - 1 <= step_slack);

/// Sums of a micro-tile by pairs of weight rows and pairs of activation rows: {weight row 0 with
/// row 0, 0 with 1, 1 with 0, 1 with 1}.
using Squares = std::array<std::array<Ints, n_row_pairs>, n_weight_pairs>;

/// Codes [k / 4][16 rows][4] become [k / 8][16 rows][8], in place.
[[HEARTH_TARGET]] void join_quads(std::span<std::byte> codes) {
  constexpr std::size_t quad = 4 * panel_rows;
  for (std::size_t at = 0; at < codes.size(); at += 2 * quad) {
    std::array<int32x4x2_t, panel_rows / width> rows;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::byte* first = &codes[at + i * sizeof(Codes)];
      rows[i] = vzipq_s32(load_ints(first).lanes, load_ints(first + quad).lanes);
    }
    std::memcpy(&codes[at], rows.data(), sizeof rows);
  }
}

/// Elements k to k + 16 of two consecutive activation rows, in halves {8 of the first, 8 of the
/// second}.
[[HEARTH_INLINE]] inline std::array<int8x16_t, 2> load_row_pair(const ActivationStep* steps,
                                                                std::size_t k) {
  const auto first = load<int64x2_t>(steps[0].codes.data() + k);
  const auto second = load<int64x2_t>(steps[1].codes.data() + k);
  return {vreinterpretq_s8_s64(vzip1q_s64(first, second)),
          vreinterpretq_s8_s64(vzip2q_s64(first, second))};
}

/// Adds 16 elements: `codes` at the first weight row of the micro-tile, rows at element k.
[[HEARTH_INLINE]] inline void add_products(const std::byte* codes, const ActivationStep* steps,
                                           std::size_t k, Squares& sums) {
  std::array<std::array<int8x16_t, 2>, n_row_pairs> x;
  unroll<n_row_pairs>([&](auto p) HEARTH_LAMBDA { x[p] = load_row_pair(steps + 2 * p, k); });
  unroll<2>([&](auto half) HEARTH_LAMBDA {
    unroll<n_weight_pairs>([&](auto w) HEARTH_LAMBDA {
      const auto weights = load<int8x16_t>(codes, (half * panel_rows + 2 * w) * 8);
      unroll<n_row_pairs>([&](auto p) HEARTH_LAMBDA {
        sums[w][p].lanes = vmmlaq_s32(sums[w][p].lanes, weights, x[p][half]);
      });
    });
  });
}

/// sums += products * the scales of the micro-tile's weight rows.
[[HEARTH_INLINE]] inline void add_scaled(const std::array<std::int32_t, panel_rows>& scales,
                                         std::size_t lane, const Squares& products, Squares& sums) {
  unroll<n_weight_pairs / 2>([&](auto half) HEARTH_LAMBDA {
    const int32x4_t four = load_row(scales, lane + width * half).lanes;
    const int32x4x2_t pairs = vzipq_s32(four, four);
    unroll<2>([&](auto i) HEARTH_LAMBDA {
      unroll<n_row_pairs>([&](auto p) HEARTH_LAMBDA {
        auto& sum = sums[2 * half + i][p];
        sum = add(sum, multiply(products[2 * half + i][p], {pairs.val[i]}));
      });
    });
  });
}

/// 8 weight rows, from `lane` on, of one tile with joined quads. acc [4][16 weight rows].
template <TileShape shape>
[[HEARTH_INLINE]] inline void multiply_squares(const UnpackedTile<shape>& tile, std::size_t lane,
                                               const ActivationStep* steps, std::size_t first,
                                               float* acc) {
  static constexpr std::size_t subs_per_unit = shape.unit / shape.sub;
  repeat<shape.n_units()>([&](std::size_t unit) HEARTH_LAMBDA {
    Squares sums{};
    repeat<subs_per_unit>([&](std::size_t i) HEARTH_LAMBDA {
      const std::size_t sub = unit * subs_per_unit + i;
      const std::byte* codes = tile.codes.data() + sub * shape.sub * panel_rows + lane * 8;
      Squares products{};
      unroll<shape.sub / 16>([&](auto part) HEARTH_LAMBDA {
        add_products(codes + 16 * part * panel_rows, steps, first + sub * shape.sub + 16 * part,
                     products);
      });
      if constexpr (shape.has_subs()) {
        add_scaled(tile.sub_scales[sub], lane, products, sums);
      } else {
        sums = products;
      }
    });
    unroll<n_weight_pairs / 2>([&](auto half) HEARTH_LAMBDA {
      const std::size_t at = lane + width * half;
      unroll<n_row_pairs>([&](auto p) HEARTH_LAMBDA {
        const int32x4x2_t rows = vuzpq_s32(sums[2 * half][p].lanes, sums[2 * half + 1][p].lanes);
        unroll<2>([&](auto i) HEARTH_LAMBDA {
          const std::size_t row = 2 * p + i;
          float* to = acc + row * panel_rows + at;
          store_floats(
              add_unit<Unpacked<shape>>({&tile, at}, steps[row], unit, first + unit * shape.unit,
                                        {rows.val[i]}, load_floats(to)),
              to);
        });
      });
    });
  });
}

/// The last micro-tile may reach beyond the last row, into the slack after steps and sums.
template <class Q>
[[HEARTH_TARGET]] void matmul_i8mm(const MatmulTask& task) {
  static constexpr TileShape shape = shape_of<Q>;
  static constexpr std::int64_t tile_bytes = Q::info.block_bytes * panel_rows;
  static_assert(sizeof(UnpackedTile<shape>) <= unpacked_bytes);
  auto& tile = *as_array<UnpackedTile<shape>>(after_panel(task));
  auto* acc = as_array<float>(after_panel(task) + unpacked_bytes);  // [rows, 16]
  for (std::int64_t o = 0; o < task.n_out; o += panel_rows) {
    const std::byte* panel = panel_tiles<Q>(task, o);
    std::fill_n(acc, (task.n_rows + step_slack) * panel_rows, 0.0f);
    for (std::int64_t block = 0; block < task.n_in / Q::info.block_weights; ++block) {
      unpack<Q>(panel + block * tile_bytes, tile);
      join_quads(tile.codes);
      const ActivationStep* steps = task.x.steps + block / blocks_per_step<Q> * task.n_rows;
      const auto first =
          static_cast<std::size_t>(block % blocks_per_step<Q> * Q::info.block_weights);
      for (std::size_t lane = 0; lane < panel_rows; lane += 2 * n_weight_pairs) {
        for (std::int64_t row = 0; row < task.n_rows; row += tile_rows) {
          multiply_squares<shape>(tile, lane, steps + row, first, acc + row * panel_rows);
        }
      }
    }
    const std::int64_t n = std::min(panel_rows, task.n_out - o);
    for (std::int64_t row = 0; row < task.n_rows; ++row) {
      std::copy_n(acc + row * panel_rows, n, task.out + row * task.out_stride + o);
    }
  }
}

}  // namespace

KernelSet neon_i8mm_kernels() {
  KernelSet set = neon_dotprod_kernels();
  set.name = "neon-i8mm";
  quant::AllQuantTypes::for_each([&]<class Q>() {
    if constexpr (quant::HasIntegerForm<Q>) {
      set.matmul_many[static_cast<std::size_t>(Q::info.dtype)] = matmul_i8mm<Q>;
    }
  });
  return set;
}

}  // namespace hearth::backend::cpu
