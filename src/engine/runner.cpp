#include "engine/runner.h"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "base/assert.h"
#include "base/fail.h"
#include "graph/builder.h"
#include "graph/ops/argmax.h"
#include "graph/ops/top_k.h"

namespace hearth::engine {
namespace {

// Decode and verify steps have few rows and want tight buckets; prompt chunks amortise looser ones.
constexpr std::array<std::int64_t, 22> bucket_sizes{
    1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 2048, 4096, 8192};

}  // namespace

std::int64_t row_bucket(std::int64_t n, std::int64_t limit) {
  const auto* size = std::lower_bound(bucket_sizes.begin(), bucket_sizes.end(), n);
  return size == bucket_sizes.end() ? limit : std::min(*size, limit);
}

graph::CacheDescs cache_descs(const model::Model& model, const RunnerOptions& options) {
  graph::CacheDescs caches{
      .kv = {options.kv_dtype, options.n_kv_blocks, model.kv_layers()},
      .states = {options.n_state_slots, model.state_layers()},
      .rows = {options.n_stored_rows, model.params().embed},
  };
  if (options.n_stored_rows > 0) {
    HEARTH_ASSERT(model.mtp() != nullptr);
    caches.kv.layers.push_back(model.mtp()->mtp_kv_layer());
  }
  return caches;
}

Result<std::unique_ptr<Runner>> Runner::create(const model::Model& model, backend::Backend& backend,
                                               const RunnerOptions& options) {
  std::unique_ptr<Runner> runner(new Runner(model, backend, options));
  const graph::CacheDescs caches = cache_descs(model, options);
  HEARTH_TRY(caches.check());
  try {
    if (!backend.makes_weights()) {
      HEARTH_ASSIGN(runner->loaded_, graph::LoadedWeights::load(model.weights()));
    }
    const auto& weights = backend.makes_weights() ? model.weights() : runner->loaded_.table();
    HEARTH_ASSIGN(runner->session_, backend.open(weights, caches));
    // The larger first: a workspace that grows is there twice on a device.
    for (const Part part : {Part::trunk_argmax, Part::trunk_top_k, Part::trunk}) {
      HEARTH_TRY(runner->bucket_for(part, options.max_rows, options.max_logit_rows));
    }
    if (runner->has_mtp()) {
      HEARTH_TRY(runner->bucket_for(Part::mtp_argmax, options.max_rows, options.max_logit_rows));
      HEARTH_TRY(runner->bucket_for(Part::mtp_reading, options.max_rows, 1));
    }
  } catch (const std::bad_alloc&) {
    return fail(
        ErrorCode::out_of_memory,
        "{}: the KV cache of {} bytes, the recurrent state of {} bytes and the workspace do "
        "not fit in memory",
        model.name(), caches.kv.bytes(), caches.states.bytes());
  }
  return runner;
}

backend::MemoryUse Runner::memory() const {
  backend::MemoryUse use = session_->memory();
  use.weight_bytes += loaded_.bytes();
  return use;
}

Result<std::span<const float>> Runner::run(const graph::StepView& step) {
  return run(Part::trunk, step);
}

Result<std::span<const graph::ColumnValue>> Runner::run_argmax(const graph::StepView& step) {
  return search(Part::trunk_argmax, step);
}

Result<std::span<const graph::ColumnValue>> Runner::run_top_k(const graph::StepView& step) {
  return search(Part::trunk_top_k, step);
}

std::int64_t Runner::n_top() const {
  // The usual top-k of 20 to 40 and the usual window of 64 tokens with penalties, and more.
  constexpr std::int64_t enough = 128;
  return std::min(enough, model_.n_usable_tokens());
}

Result<std::span<const float>> Runner::run_mtp(const graph::StepView& step) {
  HEARTH_ASSERT(has_mtp());
  return run(Part::mtp, step);
}

Result<std::span<const graph::ColumnValue>> Runner::run_mtp_argmax(const graph::StepView& step) {
  HEARTH_ASSERT(has_mtp());
  return search(Part::mtp_argmax, step);
}

Result<void> Runner::run_mtp_reading(const graph::StepView& step) {
  HEARTH_ASSERT(has_mtp() && step.n_logit_rows() == 0);
  HEARTH_TRY(run(Part::mtp_reading, step));
  return {};
}

Result<backend::StepQueue*> Runner::argmax_queue(std::int64_t n_rows, std::int64_t n_logit_rows) {
  HEARTH_ASSIGN(auto* compiled, bucket_for(Part::trunk_argmax, n_rows, n_logit_rows));
  return compiled->executable->queue();
}

Result<std::span<const float>> Runner::run(Part part, const graph::StepView& step) {
  HEARTH_ASSERT(step.n_rows() <= options_.max_rows &&
                step.n_logit_rows() <= options_.max_logit_rows);
  HEARTH_ASSIGN(auto* compiled, bucket_for(part, step.n_rows(), step.n_logit_rows()));
  return compiled->executable->run(step);
}

Result<std::span<const graph::ColumnValue>> Runner::search(Part part, const graph::StepView& step) {
  HEARTH_ASSIGN(const auto numbers, run(part, step));
  return graph::column_values(numbers);
}

Result<plan::StepCost> Runner::cost(std::int64_t n_rows, std::int64_t n_logit_rows) {
  HEARTH_ASSIGN(auto* compiled, bucket_for(Part::trunk_argmax, n_rows, n_logit_rows));
  return compiled->cost;
}

Result<std::vector<std::string_view>> Runner::kernels(std::int64_t n_rows,
                                                      std::int64_t n_logit_rows) {
  HEARTH_ASSIGN(auto* compiled, bucket_for(Part::trunk_argmax, n_rows, n_logit_rows));
  return compiled->executable->kernels();
}

Result<graph::Graph> Runner::record(Part part, graph::RowBucket bucket) const {
  switch (part) {
    case Part::trunk:
      return has_mtp() ? model_.mtp()->record_storing_trunk(model_.weights(), bucket)
                       : model_.record(bucket);
    case Part::mtp:
      return model_.mtp()->record_mtp(model_.weights(), bucket);
    case Part::trunk_argmax:
      return with_argmax(record(Part::trunk, bucket));
    case Part::trunk_top_k:
      return with_top_k(record(Part::trunk, bucket));
    case Part::mtp_argmax:
      return with_argmax(record(Part::mtp, bucket));
    case Part::mtp_reading:
      break;
  }
  return model_.mtp()->record_mtp_reading(model_.weights(), bucket);
}

Result<graph::Graph> Runner::with_argmax(Result<graph::Graph> graph) const {
  HEARTH_TRY(graph);
  const graph::ValueId logits = graph->result;
  graph::GraphBuilder g(model_.weights(), std::move(*graph));
  return g.finish(graph::argmax(g, logits, model_.n_usable_tokens()));
}

Result<graph::Graph> Runner::with_top_k(Result<graph::Graph> graph) const {
  HEARTH_TRY(graph);
  const graph::ValueId logits = graph->result;
  graph::GraphBuilder g(model_.weights(), std::move(*graph));
  return g.finish(graph::top_k(g, logits, model_.n_usable_tokens(), n_top()));
}

Result<Runner::Compiled*> Runner::bucket_for(Part part, std::int64_t n_rows,
                                             std::int64_t n_logit_rows) {
  const Key key{part,
                {row_bucket(n_rows, options_.max_rows),
                 row_bucket(std::max<std::int64_t>(n_logit_rows, 1), options_.max_logit_rows)}};
  if (const auto found = buckets_.find(key); found != buckets_.end()) {
    return &found->second;
  }
  HEARTH_ASSIGN(const auto graph, record(part, key.bucket));
  const auto plan = plan::make_plan(graph, model_.weights(), plan_options_);
  HEARTH_ASSIGN(auto executable, session_->compile(plan));
  return &buckets_.emplace(key, Compiled{std::move(executable), plan.cost}).first->second;
}

}  // namespace hearth::engine
