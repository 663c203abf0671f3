#include "backend/gpu/executor/strips.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "backend/gpu/executor/tiled_types.h"
#include "backend/gpu/kernels/strips.h"
#include "base/assert.h"
#include "base/checked.h"
#include "quant/registry.h"

namespace hearth::backend::gpu {
namespace {

constexpr u32 block_values = 256;

DType type_of(const MatrixProduct& product, const Recorder& recorder) {
  return recorder.host_weight(product.weight).tensor.dtype;
}

/// Values of one row that a product reads.
u32 n_in(const MatrixProduct& product, const Recorder& recorder) {
  return static_cast<u32>(recorder.host_weight(product.weight).tensor.shape.back());
}

/// Of `step_rows` rows of the step those that a threadgroup can multiply with a matrix of a type, 0
/// if it cannot.
u32 rows_that_fit(u32 step_rows, u32 n, u32 type, bool is_pair) {
  const u32 n_blocks = n / block_values;
  const u32 n_units = is_pair ? 2 * n_blocks : n_blocks;
  if (n_blocks > STRIP_MAX_BLOCKS) {
    return 0;
  }
  if (step_rows == 1) {
    return STRIP_IS_SMALL(type) || n_units * ROW_TERMS <= ROW_WORK ? 1 : 0;
  }
  const u32 most = type == STRIP_F32 || STRIP_IS_SMALL(type) ? STRIP_MAX_ROWS : STRIP_FEW_ROWS;
  const u32 blocks = STRIP_IS_SMALL(type) ? STRIP_MAX_BLOCKS : STRIP_LOT_BLOCKS;
  return std::min({most, blocks / n_blocks, step_rows});
}

/// A matrix as the kernel's threadgroups share it.
struct Part {
  u32 type;
  u32 n_strips;
  u32 block_bytes;
};

Part part_of(const MatrixProduct& product, const Recorder& recorder) {
  const DType dtype = type_of(product, recorder);
  const u32 type = *strip_type(product.weight, recorder);
  const u32 strip_rows = type == STRIP_F32 ? STRIP_FLOAT_ROWS : STRIP_ROWS;
  return {type, static_cast<u32>(ceil_div(product.n_out, strip_rows)),
          static_cast<u32>(quant::row_bytes(dtype, block_values))};
}

/// Strips of each part for a threadgroup: as even in bytes as at most n_groups allow, but one of
/// floats, whose chains of sums take longer than their bytes.
std::array<u32, STRIP_PARTS> share_out(std::span<const Part> parts, u32 n_groups) {
  std::array<u32, STRIP_PARTS> shares{};
  double all_bytes = 0;
  for (const Part& part : parts) {
    if (part.type == STRIP_F32) {
      n_groups -= std::min(n_groups, part.n_strips);
    } else {
      all_bytes += static_cast<double>(part.n_strips) * part.block_bytes;
    }
  }
  const auto groups_with = [&](double bytes) {
    std::int64_t n = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const bool is_float = parts[i].type == STRIP_F32;
      shares[i] = is_float ? 1 : std::max(1u, static_cast<u32>(bytes / parts[i].block_bytes));
      n += is_float ? 0 : ceil_div(parts[i].n_strips, shares[i]);
    }
    return n;
  };
  const std::int64_t limit = std::max<std::int64_t>(n_groups, std::ssize(parts));
  for (double bytes = all_bytes / static_cast<double>(limit); groups_with(bytes) > limit;) {
    bytes *= 1.02;
  }
  return shares;
}

/// Says which threadgroups multiply which matrix, and returns how many there are.
u32 divide_strips(std::span<const Part> parts, u32 n_groups, StripParams& params) {
  const auto shares = share_out(parts, n_groups);
  u32 end = 0;
  for (std::size_t i = 0; i < STRIP_PARTS; ++i) {
    if (i < parts.size()) {
      params.group_strips[i] = shares[i];
      end += static_cast<u32>(ceil_div(parts[i].n_strips, shares[i]));
    }
    params.group_end[i] = end;
  }
  return end;
}

/// As so many simdgroups share a chain of a threadgroup's as there are, if what they put aside
/// fits.
u32 chain_shift(u32 n_strips, u32 n_blocks, u32 rows, bool is_pair) {
  const u32 n_chains = n_strips * (is_pair ? 2 : 1);
  const u32 n_words =
      STRIP_POOL - FEW_PASSED_WORDS - rows * (n_blocks * STRIP_BLOCK_WORDS + STRIP_ROW_GAP);
  const auto fits = [&](u32 shift) {
    const u32 n_at_once = std::min<u32>(STRIP_SIMDGROUPS >> shift, n_chains);
    return n_at_once * (n_blocks - CHAIN_TILES(n_blocks, shift)) * FEW_TERMS <= n_words;
  };
  // Of half as many chains again as simdgroups, halves take three rounds, whole ones two that are
  // twice as long.
  if (n_chains > STRIP_SIMDGROUPS) {
    return 2 * n_chains <= 3 * STRIP_SIMDGROUPS && fits(1) ? 1 : 0;
  }
  u32 shift = 0;
  while (n_chains << (shift + 1) <= STRIP_SIMDGROUPS && fits(shift + 1)) {
    ++shift;
  }
  return shift;
}

/// What all products of a launch have in common.
void set_common(std::span<const MatrixProduct> products, const MatrixInput& input,
                const Recorder& recorder, StripParams& params) {
  const MatrixProduct& first = products.front();
  const bool is_pair = params.is_pair != 0;
  params.axis = recorder.axis(input.value());
  params.n = n_in(first, recorder);
  if (const auto* norm = input.row_norm(recorder)) {
    params.has_norm = 1;
    params.eps = norm->eps;
  }
  params.group_rows = recorder.rows(input.value());
  const bool is_row = params.group_rows == 1;
  for (const MatrixProduct& product : products) {
    params.group_rows =
        std::min(params.group_rows, rows_that_fit(recorder.rows(input.value()), params.n,
                                                  *strip_type(product.weight, recorder), is_pair));
  }
  if (is_row) {  // as many as what they say has room for, and a thread for each result
    const u32 n_units = params.n / block_values * (is_pair ? 2 : 1);
    params.round_strips = std::min<u32>(ROW_WORK / (ROW_TERMS * n_units),
                                        STRIP_THREADS / (STRIP_ROWS * (is_pair ? 2 : 1)));
  }
  params.has_row_gate = first.gate.kind == PRODUCT_ROW_GATE ? 1 : 0;
  params.row_activation = static_cast<u32>(first.gate.activation);
  params.has_residual = first.residual ? 1 : 0;
}

/// What strip_row also takes.
void add_conv(const StripConv* conv, StripParams& params, std::vector<BufferPart>& buffers,
              Recorder& recorder) {
  if (conv == nullptr) {
    buffers.insert(buffers.end(), {recorder.absent(), recorder.absent(), recorder.absent(),
                                   recorder.absent(), recorder.scratch(sizeof(float))});
    return;
  }
  const StepParts& step = recorder.step();
  const DeviceCaches& caches = recorder.context().caches;
  params.has_conv = 1;
  params.slot_stride = caches.slot_stride();
  buffers.insert(buffers.end(), {recorder.weight(conv->op.weight), step.positions,
                                 step.state_before, step.state_after, caches.ring(conv->op.layer)});
}

bool is_small(const MatrixProduct& product, const Recorder& recorder) {
  return STRIP_IS_SMALL(*strip_type(product.weight, recorder));
}

KernelId strip_kernel(std::span<const MatrixProduct> products, bool is_row,
                      const Recorder& recorder) {
  const bool has_small = std::ranges::any_of(
      products, [&](const MatrixProduct& product) { return is_small(product, recorder); });
  if (is_row) {
    return has_small ? KernelId::strip_row_small : KernelId::strip_row;
  }
  return has_small ? KernelId::strip_projection_small : KernelId::strip_projection;
}

/// `products` in the order of the kernel's weights, `n_outputs` of which have strips of their own.
void dispatch(std::span<const MatrixProduct> products, std::size_t n_outputs, StripParams params,
              MatrixInput& input, Recorder& recorder, const StripConv* conv = nullptr) {
  const MatrixProduct& first = products.front();
  set_common(products, input, recorder, params);
  BufferPart x = recorder.value(input.value());
  const auto* norm = input.row_norm(recorder);
  if (norm == nullptr) {
    x = input.floats(recorder);
    recorder.barrier();
  }
  std::vector<Part> parts;
  for (std::size_t i = 0; i < products.size(); ++i) {
    const Part part = part_of(products[i], recorder);
    params.n_out[i] = static_cast<u32>(products[i].n_out);
    params.type[i] = part.type;
    if (i < n_outputs) {
      parts.push_back(part);
    }
  }
  const auto row_groups =
      static_cast<u32>(ceil_div(recorder.rows(input.value()), params.group_rows));
  const u32 n_groups =
      divide_strips(parts, std::max(recorder.device().compute_units / row_groups, 1u), params);

  for (std::size_t i = 0; i < parts.size(); ++i) {
    params.chain_shift[i] = chain_shift(params.group_strips[i], params.n / block_values,
                                        params.group_rows, params.is_pair != 0);
  }

  std::vector<BufferPart> buffers{
      recorder.step().counts, std::move(x),
      norm != nullptr ? recorder.weight(norm->weight) : recorder.absent(),
      params.has_row_gate != 0 ? first.gate.value : recorder.absent(),
      first.residual ? recorder.value(*first.residual) : recorder.absent()};
  for (std::size_t i = 0; i < STRIP_PARTS; ++i) {
    buffers.push_back(i < products.size() ? recorder.weight(products[i].weight)
                                          : recorder.absent());
  }
  for (std::size_t i = 0; i < STRIP_PARTS; ++i) {
    const bool has_conv = i == 0 && conv != nullptr;
    buffers.push_back(has_conv        ? conv->y
                      : i < n_outputs ? products[i].y
                                      : recorder.scratch(sizeof(float)));
  }
  const bool is_row = recorder.rows(input.value()) == 1;
  if (is_row) {
    add_conv(conv, params, buffers, recorder);
  }
  recorder.dispatch(strip_kernel(products, is_row, recorder), std::move(buffers), params,
                    {n_groups, row_groups}, STRIP_THREADS);
}

}  // namespace

std::optional<u32> strip_type(graph::WeightId matrix, const Recorder& recorder) {
  const DType type = recorder.host_weight(matrix).tensor.dtype;
  if (type == DType::f32) {
    return STRIP_F32;
  }
  return recorder.is_tiled(matrix) ? tiled_type(type) : std::nullopt;
}

bool fits_strips(const MatrixProduct& product, const MatrixInput& input, const Recorder& recorder,
                 bool is_pair) {
  const u32 rows = recorder.rows(input.value());
  return rows_that_fit(rows, n_in(product, recorder), *strip_type(product.weight, recorder),
                       is_pair) == rows;
}

bool takes_strips(const MatrixProduct& product, const MatrixInput& input, const Recorder& recorder,
                  bool is_pair) {
  const u32 n = n_in(product, recorder);
  const auto& tensor = recorder.host_weight(product.weight).tensor;
  return recorder.device().has_integer_tiles && recorder.rows(input.value()) <= max_strip_rows &&
         !product.bias && !product.experts && product.gate.kind != PRODUCT_ELEMENT_GATE &&
         strip_type(product.weight, recorder) && n % block_values == 0 &&
         round_up(product.n_out, STRIP_ROWS) * quant::row_bytes(tensor.dtype, n) <=
             std::numeric_limits<u32>::max() &&
         rows_that_fit(recorder.rows(input.value()), n, *strip_type(product.weight, recorder),
                       is_pair) > 0;
}

bool takes_conv(const MatrixProduct& product, const graph::CausalConv& conv,
                const Recorder& recorder) {
  return type_of(product, recorder) != DType::f32 &&
         recorder.host_weight(conv.weight).tensor.shape.back() == STRIP_TAPS;
}

void record_strips(std::span<const MatrixProduct> products, MatrixInput& input, Recorder& recorder,
                   const StripConv* conv) {
  HEARTH_ASSERT(products.size() <= STRIP_PARTS);
  // Kernels are for blocks of one size; floats go with any.
  const auto is_float = [&](const MatrixProduct& product) {
    return type_of(product, recorder) == DType::f32;
  };
  const auto first = std::ranges::find_if_not(products, is_float);
  std::vector<MatrixProduct> with_first;
  std::vector<MatrixProduct> others;
  for (const MatrixProduct& product : products) {
    const bool goes_with_first =
        is_float(product) || is_small(product, recorder) == is_small(*first, recorder);
    (goes_with_first ? with_first : others).push_back(product);
  }
  dispatch(with_first, with_first.size(), {}, input, recorder, conv);
  if (!others.empty()) {
    dispatch(others, others.size(), {}, input, recorder);
  }
}

void record_strip_pair(const MatrixProduct& gate, const MatrixProduct& up,
                       graph::ActivationKind activation, MatrixInput& input, Recorder& recorder) {
  // The kernel writes what comes of both where the first goes.
  std::array products{gate, up};
  products[0].residual = up.residual;
  products[0].y = up.y;
  StripParams params{.is_pair = 1, .activation = static_cast<u32>(activation)};
  dispatch(products, 1, params, input, recorder);
}

}  // namespace hearth::backend::gpu
