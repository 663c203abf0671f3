#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hearth::engine {

/// Shares the rows of one step among sequences, in order of arrival. `pending[i]` is how many
/// tokens sequence i has not computed: 1 while decoding, more while its prompt is read. Everyone
/// gets one row first, so that a long prompt never stalls the others; what is left goes to prompts,
/// first come first served. Returns rows per sequence, whose sum is at most `max_rows`.
std::vector<std::int64_t> share_rows(std::span<const std::int64_t> pending, std::int64_t max_rows);

}  // namespace hearth::engine
