#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "graph/loaded_weights.h"
#include "graph/ops/column_value.h"
#include "model/model.h"

namespace hearth::engine {

struct RunnerOptions {
  DType kv_dtype = DType::f16;
  std::int64_t n_kv_blocks = 0;
  std::int64_t n_state_slots = 1;
  std::int64_t max_rows = 0;        // rows of the largest step
  std::int64_t max_logit_rows = 0;  // of them with logits
  /// With places in the row store the model's MTP head can be run; the model must have one.
  std::int64_t n_stored_rows = 0;
};

/// A model on a device, ready to run steps of any size: keeps one plan per row bucket. One thread
/// at a time.
class Runner {
 public:
  /// Opens the session and compiles the largest bucket, so that memory is settled before the first
  /// step. Errors: those of the backend; out_of_memory.
  static Result<std::unique_ptr<Runner>> create(const model::Model& model,
                                                backend::Backend& backend,
                                                const RunnerOptions& options);

  /// Logits [n_logit_rows, vocab] of one step, valid until the next. `step` is trusted: the caller
  /// has checked token ids, positions, blocks and the limits of RunnerOptions. Allocates only when
  /// a bucket is used for the first time.
  Result<std::span<const float>> run(const graph::StepView& step);
  /// The same step, of whose logits nothing but the largest of a usable token is wanted: the device
  /// finds it, and no logits are copied. [n_logit_rows]
  Result<std::span<const graph::ColumnValue>> run_argmax(const graph::StepView& step);
  /// The same step, of whose logits the n_top() largest of usable tokens are wanted, in order of
  /// tokens (graph/ops/top_k.h). [n_logit_rows, n_top()]
  Result<std::span<const graph::ColumnValue>> run_top_k(const graph::StepView& step);
  [[nodiscard]] std::int64_t n_top() const;
  /// run() and run_argmax() for a step of the MTP head.
  Result<std::span<const float>> run_mtp(const graph::StepView& step);
  Result<std::span<const graph::ColumnValue>> run_mtp_argmax(const graph::StepView& step);
  /// The head reads rows without guessing at what follows any: `step` has no logit rows.
  Result<void> run_mtp_reading(const graph::StepView& step);
  /// The steps of run_argmax(), to be started before the one in front of them is done; nullptr
  /// where a device has nothing of that. graph::column_values() reads what finish() gives.
  Result<backend::StepQueue*> argmax_queue(std::int64_t n_rows, std::int64_t n_logit_rows);

  /// See backend::Session::copy_state().
  void copy_state(std::int64_t from, std::int64_t to) { session_->copy_state(from, to); }

  /// The session's, with the weights that had to be made for it.
  [[nodiscard]] backend::MemoryUse memory() const;
  /// One line for people: how the weights lie in memory, and why.
  [[nodiscard]] std::string layout() const { return session_->description(); }
  /// What a greedy step of `n_rows` rows, all with logits or only one, costs.
  Result<plan::StepCost> cost(std::int64_t n_rows, std::int64_t n_logit_rows);
  /// What such a step starts, by name. See backend::Executable::kernels().
  Result<std::vector<std::string_view>> kernels(std::int64_t n_rows, std::int64_t n_logit_rows);
  [[nodiscard]] const RunnerOptions& options() const { return options_; }
  [[nodiscard]] const model::Model& model() const { return model_; }
  [[nodiscard]] bool has_mtp() const { return options_.n_stored_rows > 0; }

 private:
  enum class Part { trunk, trunk_argmax, trunk_top_k, mtp, mtp_argmax, mtp_reading };
  struct Key {
    Part part;
    graph::RowBucket bucket;

    auto operator<=>(const Key&) const = default;
  };
  struct Compiled {
    std::unique_ptr<backend::Executable> executable;
    plan::StepCost cost;
  };

  Runner(const model::Model& model, const backend::Backend& backend, const RunnerOptions& options)
      : model_(model), plan_options_(backend.plan_options()), options_(options) {
    plan_options_.kv_dtype = options.kv_dtype;
  }

  Result<Compiled*> bucket_for(Part part, std::int64_t n_rows, std::int64_t n_logit_rows);
  Result<std::span<const float>> run(Part part, const graph::StepView& step);
  Result<std::span<const graph::ColumnValue>> search(Part part, const graph::StepView& step);
  [[nodiscard]] Result<graph::Graph> record(Part part, graph::RowBucket bucket) const;
  /// Put a search behind a graph that ends in logits.
  [[nodiscard]] Result<graph::Graph> with_argmax(Result<graph::Graph> graph) const;
  [[nodiscard]] Result<graph::Graph> with_top_k(Result<graph::Graph> graph) const;

  const model::Model& model_;
  plan::Options plan_options_;
  RunnerOptions options_;
  graph::LoadedWeights loaded_;  // empty where the session makes weights itself
  std::unique_ptr<backend::Session> session_;
  std::map<Key, Compiled> buckets_;
};

/// What a runner keeps from step to step.
graph::CacheDescs cache_descs(const model::Model& model, const RunnerOptions& options);

/// The smallest row bucket that holds `n` rows, at most `limit`: 1 to 8, then steps of at most a
/// half. Source: docs/architecture.md, "Row buckets".
std::int64_t row_bucket(std::int64_t n, std::int64_t limit);

}  // namespace hearth::engine
