#include "model/huggingface/transforms.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "base/fail.h"
#include "formats/gguf/place.h"
#include "model/huggingface/row_orders.h"

namespace hearth::model {
namespace {

float one_more(float weight) {
  return weight + 1.0f;
}

/// In double, so that the result does not depend on whose exp it is.
float negative_exp(float weight) {
  return static_cast<float>(-std::exp(static_cast<double>(weight)));
}

Failure wrong_shape(const Gather& gather, const std::string& expected) {
  std::string found;
  for (const std::int64_t dim : gather.shape) {
    found += format("{}{}", found.empty() ? "" : ", ", dim);
  }
  return fail(ErrorCode::invalid_file, "tensor {}: expected {}, found shape [{}]",
              formats::in_quotes(gather.from), expected, found);
}

/// Sees the tensor as `n_rows` rows, all of them its outer dimension.
Result<void> expect_rows(Gather& gather, std::int64_t n_rows) {
  if (gather.shape.empty() || gather.shape.front() != n_rows) {
    return wrong_shape(gather, format("{} rows from config.json", n_rows));
  }
  gather.row_length = std::accumulate(gather.shape.begin() + 1, gather.shape.end(), std::int64_t{1},
                                      std::multiplies<>{});
  return {};
}

Result<void> pairs(std::int64_t n_heads, std::int64_t head_dim, Gather& gather) {
  if (head_dim % 2 != 0) {
    return wrong_shape(gather, format("heads of an even length, not {}", head_dim));
  }
  HEARTH_TRY(expect_rows(gather, n_heads * head_dim));
  gather.source_row = neighbouring_pairs(head_dim);
  return {};
}

Result<void> half(Gather& gather, std::int64_t number) {
  if (gather.shape.size() != 3 || gather.shape[1] % 2 != 0) {
    return wrong_shape(gather, "[experts, 2 * ffn, embed]");
  }
  const std::int64_t ffn = gather.shape[1] / 2;
  gather.shape[1] = ffn;
  gather.row_length = gather.shape[2];
  gather.source_row = part_of_each(2 * ffn, number * ffn, ffn);
  return {};
}

/// Tiles the value heads among the rows; when every key head has one, both orders are the same.
void tile(const Dimensions& dimensions, std::int64_t rows_per_head, std::int64_t n_before,
          Gather& gather) {
  const std::int64_t ratio = dimensions.n_value_heads / dimensions.n_key_heads;
  if (ratio > 1) {
    gather.source_row = tiled_value_heads(dimensions.n_key_heads, ratio, rows_per_head, n_before);
  }
}

KeyHeadGroups groups_of(const Dimensions& d) {
  return {d.n_key_heads, d.key_dim, d.n_value_heads / d.n_key_heads * d.value_dim};
}

}  // namespace

Result<void> zero_centred(const Dimensions& dimensions, Gather& gather) {
  gather.dtype = DType::f32;
  gather.change = dimensions.is_in_mlx_layout ? nullptr : one_more;
  return {};
}

Result<void> decay(const Dimensions& /*dimensions*/, Gather& gather) {
  gather.dtype = DType::f32;
  gather.change = negative_exp;
  return {};
}

Result<void> row_vector(const Dimensions& /*dimensions*/, Gather& gather) {
  if (gather.shape.size() != 2 || gather.shape[0] != 1) {
    return wrong_shape(gather, "[1, n]");
  }
  gather.shape.erase(gather.shape.begin());
  return {};
}

Result<void> convolution(const Dimensions& dimensions, Gather& gather) {
  const std::size_t single = dimensions.is_in_mlx_layout ? 2 : 1;
  if (gather.shape.size() != 3 || gather.shape[single] != 1) {
    return wrong_shape(gather,
                       dimensions.is_in_mlx_layout ? "[channels, taps, 1]" : "[channels, 1, taps]");
  }
  gather.shape.erase(gather.shape.begin() + static_cast<std::ptrdiff_t>(single));
  return {};
}

Result<void> query_pairs(const Dimensions& dimensions, Gather& gather) {
  return pairs(dimensions.n_heads, dimensions.head_dim, gather);
}

Result<void> key_pairs(const Dimensions& dimensions, Gather& gather) {
  return pairs(dimensions.n_kv_heads, dimensions.head_dim, gather);
}

Result<void> gate_half(const Dimensions& /*dimensions*/, Gather& gather) {
  return half(gather, 0);
}

Result<void> up_half(const Dimensions& /*dimensions*/, Gather& gather) {
  return half(gather, 1);
}

Result<void> tiled_rows(const Dimensions& dimensions, Gather& gather) {
  HEARTH_TRY(expect_rows(gather, dimensions.n_value_heads * dimensions.value_dim));
  tile(dimensions, dimensions.value_dim, 0, gather);
  return {};
}

Result<void> tiled_heads(const Dimensions& dimensions, Gather& gather) {
  HEARTH_TRY(expect_rows(gather, dimensions.n_value_heads));
  tile(dimensions, 1, 0, gather);
  return {};
}

Result<void> tiled_columns(const Dimensions& dimensions, Gather& gather) {
  const std::int64_t n_columns = dimensions.n_value_heads * dimensions.value_dim;
  if (gather.shape.size() != 2 || gather.shape[1] != n_columns) {
    return wrong_shape(gather, format("{} columns from config.json", n_columns));
  }
  const std::int64_t ratio = dimensions.n_value_heads / dimensions.n_key_heads;
  if (ratio > 1) {
    // What one head has in one row of the matrix counts as a row.
    gather.row_length = dimensions.value_dim;
    gather.source_row =
        [n_heads = dimensions.n_value_heads,
         order = tiled_value_heads(dimensions.n_key_heads, ratio, 1, 0)](std::int64_t row) {
          return row - row % n_heads + order(row % n_heads);
        };
  }
  return {};
}

Result<void> tiled_qkv(const Dimensions& dimensions, Gather& gather) {
  const std::int64_t n_before = 2 * dimensions.n_key_heads * dimensions.key_dim;
  HEARTH_TRY(expect_rows(gather, n_before + dimensions.n_value_heads * dimensions.value_dim));
  tile(dimensions, dimensions.value_dim, n_before, gather);
  return {};
}

Result<void> tiled_convolution(const Dimensions& dimensions, Gather& gather) {
  HEARTH_TRY(convolution(dimensions, gather));
  return tiled_qkv(dimensions, gather);
}

Result<void> tiled_decay(const Dimensions& dimensions, Gather& gather) {
  HEARTH_TRY(decay(dimensions, gather));
  return tiled_heads(dimensions, gather);
}

Result<void> qkv_of_fused(const Dimensions& dimensions, Gather& gather) {
  const KeyHeadGroups groups = groups_of(dimensions);
  HEARTH_TRY(expect_rows(gather, 2 * groups.n_key_heads * (groups.key_dim + groups.value_dim)));
  gather.shape.front() = groups.n_key_heads * (2 * groups.key_dim + groups.value_dim);
  gather.source_row = qkv_of_groups(groups);
  return {};
}

Result<void> z_of_fused(const Dimensions& dimensions, Gather& gather) {
  const KeyHeadGroups groups = groups_of(dimensions);
  HEARTH_TRY(expect_rows(gather, 2 * groups.n_key_heads * (groups.key_dim + groups.value_dim)));
  gather.shape.front() = groups.n_key_heads * groups.value_dim;
  gather.source_row = z_of_groups(groups);
  return {};
}

}  // namespace hearth::model
