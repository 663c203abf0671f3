#include "backend/cpu/cpu_backend.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/core_speeds.h"
#include "backend/cpu/launch_kernel.h"
#include "backend/cpu/layout_choice.h"
#include "backend/cpu/machine.h"
#include "backend/cpu/packed_weights.h"
#include "backend/cpu/read_stream.h"
#include "backend/cpu/thread_pool.h"
#include "backend/cpu/tile_cache.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/fail.h"

namespace hearth::backend {
namespace cpu {

Result<std::unique_ptr<LaunchKernel>> bind_launch(const plan::Launch& launch,
                                                  const BindContext& context) {
  if (const auto* projection = std::get_if<plan::Projection>(&launch)) {
    return bind_projection(*projection, context);
  }
  if (const auto* block = std::get_if<plan::AttentionBlock>(&launch)) {
    return bind_attention_block(*block, context);
  }
  if (const auto* add = std::get_if<plan::NormAdd>(&launch)) {
    return bind_norm_add(*add, context);
  }
  if (const auto* gate = std::get_if<plan::ExpertGate>(&launch)) {
    return bind_expert_gate(*gate, context);
  }
  if (const auto* down = std::get_if<plan::ExpertDown>(&launch)) {
    return bind_expert_down(*down, context);
  }
  const auto& single = std::get<plan::OpLaunch>(launch);
  if (std::holds_alternative<graph::CausalConv>(single.op)) {
    return bind_causal_conv(single, context);
  }
  if (std::holds_alternative<graph::DeltaRule>(single.op)) {
    return bind_delta_rule(single, context);
  }
  if (std::holds_alternative<graph::Router>(single.op)) {
    return bind_router(single, context);
  }
  return bind_op(single, context);
}

namespace {

/// Memory that all executables of a session share; it only grows, and only while compiling.
struct Workspace {
  Buffer arena;
  Buffer shared;
  Buffer per_thread;
  std::int64_t private_bytes = 0;  // of one thread

  [[nodiscard]] std::int64_t bytes() const {
    return arena.size() + shared.size() + per_thread.size();
  }
};

void grow(Buffer& buffer, std::int64_t bytes) {
  if (buffer.size() < bytes) {
    buffer = Buffer(bytes);
  }
}

class CpuExecutable final : public Executable {
 public:
  CpuExecutable(const plan::Plan& plan, std::vector<std::unique_ptr<LaunchKernel>> launches,
                ValueRef result, graph::HostCaches& caches, Workspace& workspace, ThreadPool& pool)
      : bucket_(plan.bucket),
        names_(plan::launch_names(plan)),
        launches_(std::move(launches)),
        result_(result),
        caches_(caches),
        workspace_(workspace),
        pool_(pool) {}

  Result<std::span<const float>> run(const graph::StepView& step) override {
    HEARTH_ASSERT(step.n_rows() <= bucket_.rows && step.n_logit_rows() <= bucket_.logit_rows &&
                  step.token_sources.empty());
    const RunContext run{.step = step,
                         .kv = caches_.kv,
                         .states = caches_.states,
                         .rows = caches_.rows,
                         .arena = workspace_.arena.bytes().data(),
                         .shared_scratch = workspace_.shared.bytes().data(),
                         .private_scratch = workspace_.per_thread.bytes().data(),
                         .private_bytes = workspace_.private_bytes};
    pool_.run([&](const Worker& worker) {
      for (const auto& launch : launches_) {
        launch->run(worker, run);
        worker.wait_for_all();
      }
    });
    return std::span<const float>(
        result_.data(run), static_cast<std::size_t>(result_.rows(step) * result_.desc.features));
  }
  [[nodiscard]] std::vector<std::string_view> kernels() const override { return names_; }

 private:
  graph::RowBucket bucket_;
  std::vector<std::string_view> names_;  // of the launches
  std::vector<std::unique_ptr<LaunchKernel>> launches_;
  ValueRef result_;
  graph::HostCaches& caches_;
  Workspace& workspace_;
  ThreadPool& pool_;
};

class CpuSession final : public Session {
 public:
  CpuSession(const graph::WeightTable& weights, const graph::CacheDescs& caches,
             const KernelSet& kernels, ThreadPool& pool, const LayoutChoice& layout)
      : weights_(weights),
        layout_(layout),
        packed_(weights_, kernels, pool, layout.is_tiled),
        caches_(caches),
        kernels_(kernels),
        pool_(pool) {}

  /// Takes tiles from the file, or sees to it that it is written when they have been made.
  void use_cache(const TileCacheOptions& options) {
    cache_path_ = options.file;
    if (const auto opened = open_cache(options.model_files); opened) {
      cache_note_ = format("; tiles mapped from {}", cache_path_.string());
    } else if (opened.error().code != ErrorCode::not_found) {
      cache_note_ = format("; cache of tiles refused: {}", opened.error().message);
    }
  }

  Result<std::unique_ptr<Executable>> compile(const plan::Plan& plan) override {
    const BindContext context{kernels_, weights_, packed_, ValueMap(plan), caches_.kv.desc()};
    std::vector<std::unique_ptr<LaunchKernel>> launches;
    std::int64_t shared_bytes = 0;
    std::int64_t private_bytes = 0;
    for (const auto& launch : plan.launches) {
      HEARTH_TRY(keep_rows_of(launch));
      HEARTH_ASSIGN(auto kernel, bind_launch(launch, context));
      shared_bytes = std::max(shared_bytes, kernel->shared_bytes());
      private_bytes = std::max(private_bytes, kernel->private_bytes());
      launches.push_back(std::move(kernel));
    }
    grow(workspace_.arena, plan.cost.arena_bytes);
    grow(workspace_.shared, shared_bytes);
    workspace_.private_bytes = std::max(workspace_.private_bytes, round_up(private_bytes, 4096));
    grow(workspace_.per_thread, workspace_.private_bytes * pool_.n_threads());
    write_cache();
    return std::make_unique<CpuExecutable>(plan, std::move(launches),
                                           ValueRef(context.values, plan.result), caches_,
                                           workspace_, pool_);
  }

  void copy_state(std::int64_t from, std::int64_t to) override { caches_.states.copy(from, to); }

  [[nodiscard]] MemoryUse memory() const override {
    return {packed_.bytes(), caches_.kv.desc().bytes(),
            caches_.states.desc().bytes() + caches_.rows.desc().bytes(), workspace_.bytes()};
  }
  [[nodiscard]] std::string description() const override {
    const auto& states = caches_.states.desc();
    const std::string weights = layout_.reason + cache_note_;
    return states.bytes() == 0
               ? weights
               : format("{}; {} slots of {:.1f} MiB for recurrent state", weights, states.n_slots,
                        static_cast<double>(states.bytes_per_slot()) / (1 << 20));
  }

 private:
  Result<void> open_cache(std::span<const std::filesystem::path> model_files) {
    HEARTH_ASSIGN(cache_key_, model_key(model_files));
    HEARTH_ASSIGN(auto cache, TileCache::open(cache_path_, *cache_key_));
    return packed_.take_from(std::move(cache));
  }

  /// Once, after the first plan, which is the largest and has bound all matrices that it reads.
  void write_cache() {
    if (!cache_key_ || !packed_.has_made_tiles()) {
      return;
    }
    const auto written = TileCache::write(cache_path_, *cache_key_, packed_.all_tiles());
    cache_note_ += written ? format("; tiles written to {}", cache_path_.string())
                           : format("; cache of tiles not written: {}", written.error().message);
    cache_key_.reset();
  }

  /// What is read as the reference reads it has to be there.
  Result<void> keep_rows_of(const plan::Launch& launch) {
    const auto* single = std::get_if<plan::OpLaunch>(&launch);
    if (single == nullptr) {
      return {};
    }
    if (const auto* embed = std::get_if<graph::Embed>(&single->op)) {
      HEARTH_TRY(packed_.keep_rows(embed->table));
    }
    for (const auto weight : plan::weights_read(launch)) {
      HEARTH_TRY(packed_.keep_rows(weight));
    }
    return {};
  }

  graph::WeightTable weights_;  // with the data of weights that were made and kept
  LayoutChoice layout_;
  PackedWeights packed_;
  graph::HostCaches caches_;
  const KernelSet& kernels_;
  ThreadPool& pool_;
  Workspace workspace_;
  std::filesystem::path cache_path_;
  std::optional<std::uint64_t> cache_key_;  // while the file is to be written
  std::string cache_note_;                  // for people
};

constexpr std::int64_t stream_bytes = 512 << 20;  // well above the last-level caches of today

class CpuBackend final : public Backend {
 public:
  CpuBackend(KernelSet kernels, const ThreadChoice& threads, const CpuOptions& options)
      : kernels_(std::move(kernels)),
        pool_(threads.n_threads, threads.fixed_share),
        layout_(options.layout),
        tile_cache_(options.tile_cache) {}

  [[nodiscard]] std::string_view name() const override { return "cpu"; }
  [[nodiscard]] std::string description() const override {
    return format("CPU, {} threads, {} kernels", pool_.n_threads(), kernels_.name);
  }
  [[nodiscard]] plan::Options plan_options() const override { return {.fuse = true}; }
  [[nodiscard]] std::int64_t free_memory() const override { return available_memory(); }
  [[nodiscard]] Result<void> check(const graph::WeightTable& /*weights*/) const override {
    return {};  // what has no kernel of its own is read in place
  }
  [[nodiscard]] bool makes_weights() const override { return true; }

  Result<std::unique_ptr<Session>> open(const graph::WeightTable& weights,
                                        const graph::CacheDescs& caches) override {
    auto session = std::make_unique<CpuSession>(
        weights, caches, kernels_, pool_, choose_layout(layout_, weights, available_memory()));
    if (tile_cache_ && tile_cache_->weights == &weights) {
      session->use_cache(*tile_cache_);
    }
    return session;
  }
  Result<std::unique_ptr<ReadStream>> read_stream() override {
    return std::make_unique<CpuReadStream>(pool_.n_threads(), stream_bytes);
  }

 private:
  KernelSet kernels_;
  ThreadPool pool_;
  WeightLayout layout_;
  std::optional<TileCacheOptions> tile_cache_;
};

}  // namespace
}  // namespace cpu

Result<std::unique_ptr<Backend>> make_cpu_backend(const CpuOptions& options) {
  if (options.n_threads < 0) {
    return fail(ErrorCode::invalid_argument, "{} threads asked for, expected at least 1",
                options.n_threads);
  }
  HEARTH_ASSIGN(auto kernels, cpu::choose_kernel_set());
  return std::make_unique<cpu::CpuBackend>(
      std::move(kernels),
      cpu::choose_threads(cpu::core_speeds(), cpu::available_cores(), options.n_threads), options);
}

}  // namespace hearth::backend
