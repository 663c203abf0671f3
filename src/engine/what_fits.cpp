#include "engine/what_fits.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/format.h"
#include "graph/kv_cache.h"
#include "quant/registry.h"
#include "quant/types/q4_0.h"
#include "quant/types/q8_0.h"

namespace hearth::engine {
namespace {

// In descending order of precision; a wish for a smaller one is kept.
constexpr std::array cache_types{DType::f32, DType::f16, quant::Q8_0::info.dtype,
                                 quant::Q4_0::info.dtype};

/// Each tensor once, however many names it has.
std::int64_t weight_bytes(const graph::WeightTable& weights) {
  std::set<const std::byte*> seen;
  std::int64_t bytes = 0;
  for (const auto& weight : weights) {
    const Bytes data = weight.tensor.data;  // empty where it has to be made
    if (data.empty() || seen.insert(data.data()).second) {
      bytes += weight.n_bytes();
    }
  }
  return bytes;
}

/// Of the largest step, at most: activations, and kernels' own memory, which is less.
std::int64_t workspace_bytes(const model::Model& model, const backend::Backend& backend,
                             const RunnerOptions& options) {
  const auto graph = model.record({options.max_rows, options.max_logit_rows});
  return graph
             ? 2 * plan::make_plan(*graph, model.weights(), backend.plan_options()).cost.arena_bytes
             : 0;
}

}  // namespace

std::string what_fits(const model::Model& model, const backend::Backend& backend,
                      const RunnerOptions& options, std::int64_t n_sequences) {
  const std::int64_t free = backend.free_memory();
  const graph::CacheDescs caches = cache_descs(model, options);
  const std::int64_t others = weight_bytes(model.weights()) + caches.states.bytes() +
                              caches.rows.bytes() + workspace_bytes(model, backend, options);
  std::string text = format("of {} free bytes, weights, state and workspace take {}", free, others);
  // What an allocator rounds up, and what a device keeps for itself.
  const std::int64_t room = free - free / 32 - others;
  std::string contexts;
  for (const DType dtype : cache_types) {
    const graph::KvCacheDesc block{dtype, 1, caches.kv.layers};
    if (dtype == DType::f32 && dtype != options.kv_dtype) {
      continue;
    }
    if (!block.check() || block.bytes() == 0 || room < n_sequences * block.bytes()) {
      continue;
    }
    const std::int64_t n_tokens = room / (n_sequences * block.bytes()) * graph::kv_block_tokens;
    contexts += format("{}{} as {}", contexts.empty() ? "" : ", ",
                       std::min(n_tokens, model.params().context), quant::name(dtype));
  }
  if (contexts.empty()) {
    return text + "; no context fits beside them";
  }
  return text +
         format("; beside them fit, in tokens of context and the type of keys and values: {}{}",
                contexts, n_sequences > 1 ? format(", for each of {} sequences", n_sequences) : "");
}

}  // namespace hearth::engine
