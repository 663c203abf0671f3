#pragma once
/// The orders of rows in which canonical tensors differ from a Hugging Face folder's, as functions
/// from a row of the result to a row of the source.

#include <cstdint>
#include <functional>

namespace hearth::model {

using RowOrder = std::function<std::int64_t(std::int64_t row)>;

/// Rotary pairs from halves (j, j + head_dim / 2) to neighbours (2 j, 2 j + 1), head by head.
RowOrder neighbouring_pairs(std::int64_t head_dim);

/// Value heads from grouped by key head (head v belongs to key head v / ratio) to tiled (v % n_k).
/// A head has `rows_per_head` rows; the first `n_before` rows stay where they are.
RowOrder tiled_value_heads(std::int64_t n_key_heads, std::int64_t ratio, std::int64_t rows_per_head,
                           std::int64_t n_before);

/// Of each run of `period` rows, those from `first` on, `n` of them.
RowOrder part_of_each(std::int64_t period, std::int64_t first, std::int64_t n);

/// How qwen3_next lays out its fused projection: per key head, rows of q, k, then of v and z of its
/// value heads.
struct KeyHeadGroups {
  std::int64_t n_key_heads = 0;
  std::int64_t key_dim = 0;    // rows of q, and of k
  std::int64_t value_dim = 0;  // rows of v, and of z: of all value heads of one key head
};
/// All rows of q, then of k, then of v.
RowOrder qkv_of_groups(const KeyHeadGroups& groups);
/// All rows of z.
RowOrder z_of_groups(const KeyHeadGroups& groups);

}  // namespace hearth::model
