#include "model/huggingface/gather.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <utility>

#include "base/assert.h"
#include "base/fail.h"
#include "formats/gguf/place.h"
#include "model/huggingface/float8.h"
#include "quant/registry.h"

namespace hearth::model {
namespace {

using formats::ElementType;

constexpr std::int64_t piece_bytes = 1 << 20;

bool is_float8(const GatherSource& source) {
  return source.tensor->type == ElementType::f8_e4m3;
}

/// Copies `n` elements from the `first` on, as they are.
void copy_elements(const GatherSource& source, std::int64_t first, std::byte* out, std::int64_t n) {
  const auto n_bytes = static_cast<std::int64_t>(formats::info(source.tensor->type).n_bytes);
  const auto bytes = source.tensor->data.subspan(static_cast<std::size_t>(first * n_bytes),
                                                 static_cast<std::size_t>(n * n_bytes));
  std::ranges::copy(bytes, out);
}

/// A run of elements of an FP8 tensor within one row and one block.
struct ScaledRun {
  double scale;
  std::int64_t n;
};

/// The run that begins at element `index`.
ScaledRun run_at(const GatherSource& source, std::int64_t index) {
  const auto& shape = source.tensor->shape;
  const std::int64_t n_columns = shape.back();
  const std::int64_t n_rows = shape[shape.size() - 2];
  const std::int64_t row = index / n_columns % n_rows;
  const std::int64_t column = index % n_columns;
  const std::int64_t matrix = index / n_columns / n_rows;
  const std::int64_t scale_row =
      matrix * source.scales->shape[shape.size() - 2] + row / source.block_rows;
  const auto at = static_cast<std::size_t>(scale_row * source.scales->shape.back() +
                                           column / source.block_columns);
  const auto* scales = source.scales->data.data();
  const float scale = source.scales->type == ElementType::f32
                          ? load<float>(scales, at * sizeof(float))
                          : to_float(load<BFloat16>(scales, at * sizeof(BFloat16)));
  const std::int64_t left_in_block = source.block_columns - column % source.block_columns;
  return {scale, std::min(left_in_block, n_columns - column)};
}

/// FP8 times its scale, exact in double (4 and 24 significant bits) and rounded once.
Result<void> decode_float8(const Gather& gather, const GatherSource& source, std::int64_t first,
                           std::byte* out, std::int64_t n) {
  const auto* codes = as_array<std::uint8_t>(source.tensor->data.data()) + first;
  if (std::any_of(codes, codes + n, [](auto code) { return is_nan(Float8E4M3{code}); })) {
    return fail(ErrorCode::invalid_file, "tensor {}: expected finite weights, found NaN",
                formats::in_quotes(gather.from));
  }
  for (std::int64_t done = 0; done < n;) {
    const ScaledRun run = run_at(source, first + done);
    const std::int64_t end = std::min(n, done + run.n);
    for (; done < end; ++done) {
      const double weight = to_double(Float8E4M3{codes[done]}) * run.scale;
      const auto at = static_cast<std::size_t>(done);
      if (gather.dtype == DType::bf16) {
        store(out, round_to_bfloat16(weight), at * sizeof(BFloat16));
      } else {
        store(out, static_cast<float>(weight), at * sizeof(float));
      }
    }
  }
  return {};
}

/// The blocks, or the floats that they stand for.
Result<void> read_groups(const Gather& gather, const MlxGroups& groups, std::int64_t first,
                         std::byte* out, std::int64_t n) {
  if (gather.dtype == groups.dtype) {
    return read_mlx_blocks(groups, first, n, out);
  }
  HEARTH_ASSERT(gather.dtype == DType::f32);
  Buffer blocks(quant::row_bytes(groups.dtype, n));
  HEARTH_TRY(read_mlx_blocks(groups, first, n, blocks.data<std::byte>()));
  quant::decode(groups.dtype, blocks.bytes(), {as_array<float>(out), static_cast<std::size_t>(n)});
  return {};
}

/// `n` elements of a source, in the type of the result.
Result<void> read_elements(const Gather& gather, const GatherSource& source, std::int64_t first,
                           std::byte* out, std::int64_t n) {
  if (is_float8(source)) {
    return decode_float8(gather, source, first, out, n);
  }
  if (source.groups) {
    return read_groups(gather, *source.groups, first, out, n);
  }
  const auto& type = formats::info(source.tensor->type);
  if (type.dtype == gather.dtype) {
    copy_elements(source, first, out, n);
    return {};
  }
  const auto n_bytes = static_cast<std::int64_t>(type.n_bytes);
  quant::decode(*type.dtype,
                source.tensor->data.subspan(static_cast<std::size_t>(first * n_bytes),
                                            static_cast<std::size_t>(n * n_bytes)),
                {as_array<float>(out), static_cast<std::size_t>(n)});
  return {};
}

/// One row of the result.
Result<void> read_row(const Gather& gather, std::int64_t row, std::byte* out) {
  const std::int64_t source_row = gather.source_row ? gather.source_row(row) : row;
  const std::int64_t rows_of_source = gather.sources.front().n_elements() / gather.row_length;
  const auto source = static_cast<std::size_t>(source_row / rows_of_source);
  HEARTH_ASSERT(source_row >= 0 && source < gather.sources.size());
  HEARTH_TRY(read_elements(gather, gather.sources[source],
                           source_row % rows_of_source * gather.row_length, out,
                           gather.row_length));
  if (gather.change != nullptr) {
    const std::span<float> weights(as_array<float>(out),
                                   static_cast<std::size_t>(gather.row_length));
    std::ranges::transform(weights, weights.begin(), gather.change);
  }
  return {};
}

Result<void> make(const Gather& gather, const formats::ByteSink& sink) {
  const std::int64_t row_bytes = quant::row_bytes(gather.dtype, gather.row_length);
  const std::int64_t n_rows = gather.n_rows();
  const std::int64_t rows_per_piece = std::max<std::int64_t>(1, piece_bytes / row_bytes);
  Buffer piece(std::min(n_rows, rows_per_piece) * row_bytes);
  for (std::int64_t first = 0; first < n_rows; first += rows_per_piece) {
    const std::int64_t n = std::min(rows_per_piece, n_rows - first);
    for (std::int64_t i = 0; i < n; ++i) {
      HEARTH_TRY(read_row(gather, first + i, piece.data<std::byte>(i * row_bytes)));
    }
    HEARTH_TRY(sink(piece.bytes().first(static_cast<std::size_t>(n * row_bytes))));
  }
  return {};
}

/// Whether the runs that move are whole blocks and parts of rows, where MLX has blocks.
bool keeps_blocks(const Gather& gather) {
  const GatherSource& source = gather.sources.front();
  return !source.groups || (gather.row_length % quant::info(source.dtype()).block_weights == 0 &&
                            source.shape().back() % gather.row_length == 0);
}

bool is_unchanged(const Gather& gather) {
  const GatherSource& source = gather.sources.front();
  return gather.sources.size() == 1 && !gather.source_row && gather.change == nullptr &&
         formats::info(source.tensor->type).dtype == gather.dtype;
}

}  // namespace

const std::vector<std::int64_t>& GatherSource::shape() const {
  return groups ? groups->shape : tensor->shape;
}

std::int64_t GatherSource::n_elements() const {
  return std::accumulate(shape().begin(), shape().end(), std::int64_t{1}, std::multiplies<>{});
}

DType GatherSource::dtype() const {
  return groups ? groups->dtype : formats::info(tensor->type).dtype.value_or(DType::bf16);  // FP8
}

std::int64_t Gather::n_rows() const {
  return Shape(shape).elements() / row_length;
}

Result<CheckpointTensor> finish(Gather gather, std::string name, std::string file) {
  HEARTH_ASSERT(gather.change == nullptr || gather.dtype == DType::f32);
  const bool has_data = std::ranges::all_of(gather.shape, [](auto dim) { return dim > 0; });
  if (gather.shape.empty() || gather.shape.size() > Shape::max_rank || !has_data) {
    return fail(ErrorCode::unsupported,
                "{}: tensor {}: expected 1 to {} dimensions of at least 1, found {}", file,
                formats::in_quotes(gather.from), Shape::max_rank + 0, gather.shape.size());
  }
  if (!keeps_blocks(gather)) {
    return fail(ErrorCode::unsupported,
                "{}: tensor {}: expected an order of whole blocks within rows, found runs of {} "
                "weights",
                file, formats::in_quotes(gather.from), gather.row_length);
  }
  CheckpointTensor tensor{.name = std::move(name),
                          .dtype = gather.dtype,
                          .shape = Shape(gather.shape),
                          .shard = gather.sources.front().tensor->shard};
  if (is_unchanged(gather)) {
    tensor.mapped = gather.sources.front().tensor->data;
  } else {
    tensor.make = [gather = std::move(gather),
                   file = std::move(file)](const formats::ByteSink& sink) -> Result<void> {
      auto made = model::make(gather, sink);
      return made || made.error().code != ErrorCode::invalid_file
                 ? made
                 : fail(ErrorCode::invalid_file, "{}: {}", file, made.error().message);
    };
  }
  return tensor;
}

}  // namespace hearth::model
