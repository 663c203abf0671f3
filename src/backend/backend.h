#pragma once
/// What a device must offer. The engine knows only this interface; backend/{reference,cpu,gpu} are
/// siblings that never include one another.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "graph/caches.h"
#include "graph/step.h"
#include "graph/value.h"
#include "plan/plan.h"

namespace hearth::backend {

/// Steps of one plan on a device that is given the next before it has done the last, so that it
/// need not wait for the host. One thread at a time.
class StepQueue {
 public:
  virtual ~StepQueue() = default;

  /// Starts a step. At most two may be under way; the second has the sequences of the first, whose
  /// tokens it may take (StepView::token_sources). Allocates nothing after the first two. Errors:
  /// as run().
  virtual Result<void> start(const graph::StepView& step) = 0;
  /// The result of the first step that is under way, valid until the next but one is started. While
  /// one is, nothing else may be run in the session. Errors: as run(); results of steps behind one
  /// that failed mean nothing.
  virtual Result<std::span<const float>> finish() = 0;
};

/// A plan made ready to run: launches bound to kernels, weights and workspace. One thread at a
/// time.
class Executable {
 public:
  virtual ~Executable() = default;

  /// Runs one step and returns the result of the plan, logits [n_logit_rows, vocab] or what was
  /// recorded behind them, in host memory, valid until the next run. `step` holds at most the
  /// plan's row bucket; token ids, positions and blocks are within range (the engine checks).
  /// Allocates nothing. Errors: internal when the device failed; if it is lost, the next run opens
  /// it anew, with caches that hold nothing.
  virtual Result<std::span<const float>> run(const graph::StepView& step) = 0;

  /// The same steps, started ahead; nullptr where a device has nothing of that.
  [[nodiscard]] virtual StepQueue* queue() { return nullptr; }

  /// What a run starts, in order, by name: kernels on a GPU, elsewhere launches of the plan.
  [[nodiscard]] virtual std::vector<std::string_view> kernels() const = 0;
};

/// Bytes a session occupies on its device.
struct MemoryUse {
  std::int64_t weight_bytes = 0;  // copied or made; 0 where the file mapping itself is used
  std::int64_t kv_bytes = 0;
  std::int64_t state_bytes = 0;      // recurrent state, all slots, and rows kept between graphs
  std::int64_t workspace_bytes = 0;  // arena and kernel scratch, shared by all executables
};

/// A model on a device: weights, KV cache, recurrent state and the workspace that its executables
/// share.
/// The weight table must outlive it. One thread at a time.
class Session {
 public:
  virtual ~Session() = default;

  /// Binds a plan made with Backend::plan_options(). Compile the largest bucket first: the
  /// workspace grows only here. Errors: unsupported (an op or type without kernel), out_of_memory.
  virtual Result<std::unique_ptr<Executable>> compile(const plan::Plan& plan) = 0;

  /// Makes state slot `to` what slot `from` is after the last run: the taking of a snapshot, or
  /// going back to one. Both are slots of the desc that the session was opened with.
  virtual void copy_state(std::int64_t from, std::int64_t to) = 0;

  [[nodiscard]] virtual MemoryUse memory() const = 0;
  /// One line for people: how the weights lie in memory, and why.
  [[nodiscard]] virtual std::string description() const = 0;
};

/// How fast a device reads its memory: the denominator of every decode speed, because a decode step
/// reads all weights once. One thread at a time.
class ReadStream {
 public:
  virtual ~ReadStream() = default;

  /// Bytes per second. Reads far more than any cache holds.
  virtual Result<double> measure() = 0;
};

/// A device. It must outlive its sessions and read streams, as they must outlive their executables.
class Backend {
 public:
  virtual ~Backend() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;
  /// One line for people: device, threads, instruction set.
  [[nodiscard]] virtual std::string description() const = 0;
  /// How plans for this backend are made.
  [[nodiscard]] virtual plan::Options plan_options() const = 0;
  /// Rows of a step that prompts are best read in: more would make nothing faster.
  [[nodiscard]] virtual std::int64_t prompt_rows() const { return 512; }
  /// Bytes that weights, caches and workspace can take here now, about.
  [[nodiscard]] virtual std::int64_t free_memory() const = 0;

  /// Whether a model can run here, as far as its weights tell. Errors: unsupported, which names a
  /// weight; out_of_memory.
  [[nodiscard]] virtual Result<void> check(const graph::WeightTable& weights) const = 0;

  /// Whether sessions make the weights that have to be made, each when its turn comes. Otherwise
  /// all must have their data when a session is opened (graph::LoadedWeights).
  [[nodiscard]] virtual bool makes_weights() const { return false; }

  /// Brings a model onto the device: maps, uploads or repacks the weights and allocates the caches,
  /// whose descs have passed check(). Errors: out_of_memory, unsupported.
  virtual Result<std::unique_ptr<Session>> open(const graph::WeightTable& weights,
                                                const graph::CacheDescs& caches) = 0;

  /// Errors: out_of_memory; unsupported by a backend that is not meant to be fast.
  virtual Result<std::unique_ptr<ReadStream>> read_stream() = 0;
};

}  // namespace hearth::backend
