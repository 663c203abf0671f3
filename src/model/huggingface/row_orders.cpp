#include "model/huggingface/row_orders.h"

namespace hearth::model {

RowOrder neighbouring_pairs(std::int64_t head_dim) {
  return [head_dim](std::int64_t row) {
    const std::int64_t in_head = row % head_dim;
    return row - in_head + in_head % 2 * (head_dim / 2) + in_head / 2;
  };
}

RowOrder tiled_value_heads(std::int64_t n_key_heads, std::int64_t ratio, std::int64_t rows_per_head,
                           std::int64_t n_before) {
  return [=](std::int64_t row) {
    if (row < n_before) {
      return row;
    }
    const std::int64_t tiled = (row - n_before) / rows_per_head;
    const std::int64_t grouped = tiled % n_key_heads * ratio + tiled / n_key_heads;
    return n_before + grouped * rows_per_head + (row - n_before) % rows_per_head;
  };
}

RowOrder part_of_each(std::int64_t period, std::int64_t first, std::int64_t n) {
  return [=](std::int64_t row) { return row / n * period + first + row % n; };
}

RowOrder qkv_of_groups(const KeyHeadGroups& groups) {
  const std::int64_t period = 2 * (groups.key_dim + groups.value_dim);
  const std::int64_t n_q = groups.n_key_heads * groups.key_dim;
  const RowOrder q = part_of_each(period, 0, groups.key_dim);
  const RowOrder k = part_of_each(period, groups.key_dim, groups.key_dim);
  const RowOrder v = part_of_each(period, 2 * groups.key_dim, groups.value_dim);
  return [=](std::int64_t row) {
    return row < n_q ? q(row) : row < 2 * n_q ? k(row - n_q) : v(row - 2 * n_q);
  };
}

RowOrder z_of_groups(const KeyHeadGroups& groups) {
  return part_of_each(2 * (groups.key_dim + groups.value_dim),
                      2 * groups.key_dim + groups.value_dim, groups.value_dim);
}

}  // namespace hearth::model
