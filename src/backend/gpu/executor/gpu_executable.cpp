#include "backend/gpu/executor/gpu_executable.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/assert.h"
#include "base/bytes.h"

namespace hearth::backend::gpu {
namespace {

/// The rotations of a plan, each once.
std::vector<graph::RopeParams> ropes_of(const plan::Plan& plan) {
  std::vector<graph::RopeParams> ropes;
  const auto add = [&ropes](const graph::RopeParams& rope) {
    if (std::ranges::find(ropes, rope) == ropes.end()) {
      ropes.push_back(rope);
    }
  };
  for (const auto& launch : plan.launches) {
    if (const auto* block = std::get_if<plan::AttentionBlock>(&launch); block && block->rope) {
      add(*block->rope);
    } else if (const auto* single = std::get_if<plan::OpLaunch>(&launch)) {
      if (const auto* rope = std::get_if<graph::Rope>(&single->op)) {
        add(rope->params);
      }
    }
  }
  return ropes;
}

/// A buffer of at least that size in place of a smaller one, which lives on with who uses it.
Result<void> grow(Device& device, std::shared_ptr<Buffer>& buffer, std::int64_t bytes,
                  std::string_view label) {
  const auto wanted = static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 1));
  if (buffer == nullptr || buffer->size_bytes() < wanted) {
    HEARTH_ASSIGN(buffer, device.allocate(wanted, label));
  }
  return {};
}

constexpr std::chrono::nanoseconds no_time{0};

}  // namespace

Result<std::unique_ptr<GpuExecutable>> GpuExecutable::create(const plan::Plan& plan,
                                                             SessionMemory& memory) {
  HEARTH_ASSIGN(auto step,
                StepMemory::create(memory.device, plan.bucket, ropes_of(plan), memory.weights));
  memory.step_bytes += step.bytes();
  std::unique_ptr<GpuExecutable> executable(new GpuExecutable(plan, memory, std::move(step)));
  HEARTH_TRY(grow(memory.device, memory.arena, plan.cost.arena_bytes, "activations"));
  const auto& logits = plan.values[graph::index(plan.logits)];
  const auto logit_bytes =
      static_cast<std::uint64_t>(logits.rows * logits.features) * sizeof(float);
  if (memory.logits == nullptr || memory.logits->size_bytes() < logit_bytes) {
    HEARTH_ASSIGN(memory.logits, memory.device.allocate_host(logit_bytes, "logits"));
  }
  executable->host_logits_ = memory.logits;
  HEARTH_TRY(executable->prepare());
  return executable;
}

Result<void> GpuExecutable::prepare() {
  // The first recording only measures: scratch memory lies wherever.
  HEARTH_TRY(grow(memory_.device, memory_.scratch, 1, "scratch"));
  CommandList measured;
  HEARTH_ASSIGN(const auto scratch_bytes, record(measured));
  HEARTH_TRY(grow(memory_.device, memory_.scratch, scratch_bytes, "scratch"));
  CommandList list;
  HEARTH_TRY(record(list));
  HEARTH_ASSIGN(commands_, memory_.device.prepare(list));
  recorded_tables_ = memory_.tables.part().buffer;
  return {};
}

/// Returns the scratch memory that the launches need.
Result<std::int64_t> GpuExecutable::record(CommandList& list) {
  const RecordContext context{.plan = plan_,
                              .device = memory_.device.capabilities(),
                              .weights = memory_.weights,
                              .device_weights = memory_.device_weights,
                              .caches = memory_.caches,
                              .tables = memory_.tables,
                              .step = step_,
                              .arena = whole(memory_.arena),
                              .scratch = whole(memory_.scratch)};
  Recorder recorder(context, list);
  step_.record_copy(list);
  for (std::span<const plan::Launch> left = plan_.launches; !left.empty();) {
    HEARTH_ASSIGN(const std::size_t n_recorded, recorder.record(left));
    left = left.subspan(n_recorded);
  }
  device_logits_ = recorder.value(plan_.logits);
  return recorder.scratch_bytes();
}

Result<std::span<const float>> GpuExecutable::run(const graph::StepView& step) {
  HEARTH_ASSERT(step.n_rows() <= plan_.bucket.rows &&
                step.n_logit_rows() <= plan_.bucket.logit_rows);
  Device& device = memory_.device;
  HEARTH_TRY(memory_.tables.update(device, step));
  if (memory_.tables.part().buffer != recorded_tables_) {
    HEARTH_TRY(prepare());
  }
  step_.write(step);
  HEARTH_ASSIGN(const Ticket ticket, device.submit(*commands_));

  const auto n_logits = static_cast<std::size_t>(step.n_logit_rows() *
                                                 plan_.values[graph::index(plan_.logits)].features);
  const auto logits = host_logits_->host().first(n_logits * sizeof(float));
  if (!logits.empty()) {
    HEARTH_TRY(device.download(
        logits, {device_logits_.buffer, device_logits_.offset, logits.size_bytes()}));
  }
  HEARTH_ASSIGN(bool is_done, device.wait(ticket, no_time));
  while (!is_done) {
    HEARTH_ASSIGN(is_done, device.wait(ticket, std::chrono::seconds(1)));
  }
  return std::span(as_array<const float>(logits.data()), n_logits);
}

}  // namespace hearth::backend::gpu
