#include "backend/reference/reference_backend.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/fail.h"

namespace hearth::backend {
namespace {

std::int64_t live_rows(const graph::ValueDesc& desc, const graph::StepView& step) {
  return desc.axis == graph::RowAxis::batch ? step.n_rows() : step.n_logit_rows();
}

class ReferenceExecutable final : public Executable {
 public:
  ReferenceExecutable(plan::Plan plan, const graph::WeightTable& weights, graph::HostCaches& caches)
      : plan_(std::move(plan)),
        weights_(weights),
        caches_(caches),
        arena_(plan_.cost.arena_bytes) {}

  Result<std::span<const float>> run(const graph::StepView& step) override {
    HEARTH_ASSERT(step.n_rows() <= plan_.bucket.rows &&
                  step.n_logit_rows() <= plan_.bucket.logit_rows && step.token_sources.empty());
    const graph::OpContext context{weights_, step, caches_.kv, caches_.states, caches_.rows};
    for (const auto& launch : plan_.launches) {
      const auto& single = std::get<plan::OpLaunch>(launch);
      std::vector<graph::ConstRows> inputs;
      for (const auto input : single.inputs) {
        const auto rows = view(input, step);
        inputs.push_back({rows.data, rows.rows, rows.features});
      }
      std::visit([&](const auto& op) { op.run(context, inputs, view(single.output, step)); },
                 single.op);
    }
    const auto result = view(plan_.result, step);
    return std::span<const float>(result.data,
                                  static_cast<std::size_t>(result.rows * result.features));
  }
  [[nodiscard]] std::vector<std::string_view> kernels() const override {
    return plan::launch_names(plan_);
  }

 private:
  graph::Rows view(graph::ValueId value, const graph::StepView& step) {
    const auto& desc = plan_.values[graph::index(value)];
    return {arena_.data<float>(plan_.placements[graph::index(value)].offset), live_rows(desc, step),
            desc.features};
  }

  plan::Plan plan_;
  const graph::WeightTable& weights_;
  graph::HostCaches& caches_;
  Buffer arena_;
};

class ReferenceSession final : public Session {
 public:
  ReferenceSession(const graph::WeightTable& weights, const graph::CacheDescs& caches)
      : weights_(weights), caches_(caches) {}

  Result<std::unique_ptr<Executable>> compile(const plan::Plan& plan) override {
    const bool unfused = std::all_of(
        plan.launches.begin(), plan.launches.end(),
        [](const auto& launch) { return std::holds_alternative<plan::OpLaunch>(launch); });
    if (!unfused) {
      return fail(ErrorCode::unsupported, "the reference backend runs unfused plans only");
    }
    workspace_bytes_ += plan.cost.arena_bytes;
    return std::make_unique<ReferenceExecutable>(plan, weights_, caches_);
  }

  void copy_state(std::int64_t from, std::int64_t to) override { caches_.states.copy(from, to); }

  [[nodiscard]] MemoryUse memory() const override {
    return {0, caches_.kv.desc().bytes(),
            caches_.states.desc().bytes() + caches_.rows.desc().bytes(), workspace_bytes_};
  }
  [[nodiscard]] std::string description() const override {
    return "weights read in place from the file";
  }

 private:
  const graph::WeightTable& weights_;
  graph::HostCaches caches_;
  std::int64_t workspace_bytes_ = 0;
};

class ReferenceBackend final : public Backend {
 public:
  [[nodiscard]] std::string_view name() const override { return "reference"; }
  [[nodiscard]] std::string description() const override {
    return "reference interpreter, one thread, plain loops";
  }
  [[nodiscard]] plan::Options plan_options() const override { return {.fuse = false}; }
  [[nodiscard]] std::int64_t free_memory() const override {
    return std::numeric_limits<std::int64_t>::max();  // nobody plans with a definition
  }
  [[nodiscard]] Result<void> check(const graph::WeightTable& /*weights*/) const override {
    return {};
  }

  Result<std::unique_ptr<Session>> open(const graph::WeightTable& weights,
                                        const graph::CacheDescs& caches) override {
    return std::make_unique<ReferenceSession>(weights, caches);
  }
  Result<std::unique_ptr<ReadStream>> read_stream() override {
    return fail(ErrorCode::unsupported, "the reference backend is a definition, not to be timed");
  }
};

}  // namespace

std::unique_ptr<Backend> make_reference_backend() {
  return std::make_unique<ReferenceBackend>();
}

}  // namespace hearth::backend
