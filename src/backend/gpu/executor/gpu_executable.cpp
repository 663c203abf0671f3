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
  std::unique_ptr<GpuExecutable> executable(new GpuExecutable(plan, memory));
  HEARTH_TRY(memory.make_ready());
  HEARTH_TRY(executable->place());
  return executable;
}

Result<void> GpuExecutable::place() {
  Device& device = memory_.device();
  auto& shared = memory_.contents();
  HEARTH_ASSIGN(auto step,
                StepMemory::create(device, plan_.bucket, ropes_of(plan_), memory_.weight_table()));
  HEARTH_TRY(grow(device, shared.arena, plan_.cost.arena_bytes, "activations"));
  const auto& logits = plan_.values[graph::index(plan_.logits)];
  const auto logit_bytes =
      static_cast<std::uint64_t>(logits.rows * logits.features) * sizeof(float);
  if (shared.logits == nullptr || shared.logits->size_bytes() < logit_bytes) {
    HEARTH_ASSIGN(shared.logits, device.allocate_host(logit_bytes, "logits"));
  }
  const std::int64_t step_bytes = step.bytes();
  recording_ = Recording{.step = std::move(step), .host_logits = shared.logits};
  auto prepared = prepare();
  if (!prepared) {
    recording_.reset();
    return prepared;
  }
  shared.step_bytes += step_bytes;
  return {};
}

Result<void> GpuExecutable::prepare() {
  Device& device = memory_.device();
  auto& shared = memory_.contents();
  // The first recording only measures: scratch memory lies wherever.
  HEARTH_TRY(grow(device, shared.scratch, 1, "scratch"));
  CommandList measured;
  HEARTH_ASSIGN(const auto scratch_bytes, record(measured));
  HEARTH_TRY(grow(device, shared.scratch, scratch_bytes, "scratch"));
  CommandList list;
  HEARTH_TRY(record(list));
  kernels_.clear();
  for (const Command& command : list.commands()) {
    if (const auto* dispatch = std::get_if<DispatchCommand>(&command)) {
      kernels_.push_back(kernel_info(dispatch->kernel).name);
    }
  }
  HEARTH_ASSIGN(recording_->commands, device.prepare(list));
  recording_->tables = shared.tables.part().buffer;
  return {};
}

/// Returns the scratch memory that the launches need.
Result<std::int64_t> GpuExecutable::record(CommandList& list) {
  const auto& shared = memory_.contents();
  const RecordContext context{.plan = plan_,
                              .device = memory_.device().capabilities(),
                              .weights = memory_.weight_table(),
                              .device_weights = shared.weights,
                              .caches = shared.caches,
                              .tables = shared.tables,
                              .step = recording_->step,
                              .arena = whole(shared.arena),
                              .scratch = whole(shared.scratch)};
  Recorder recorder(context, list);
  recording_->step.record_copy(list);
  for (std::span<const plan::Launch> left = plan_.launches; !left.empty();) {
    HEARTH_ASSIGN(const std::size_t n_recorded, recorder.record(left));
    left = left.subspan(n_recorded);
  }
  recording_->device_logits = recorder.value(plan_.logits);
  return recorder.scratch_bytes();
}

Result<std::span<const float>> GpuExecutable::run(const graph::StepView& step) {
  HEARTH_ASSERT(step.n_rows() <= plan_.bucket.rows &&
                step.n_logit_rows() <= plan_.bucket.logit_rows);
  HEARTH_TRY(memory_.make_ready());
  if (!recording_) {
    HEARTH_TRY(place());
  }
  Device& device = memory_.device();
  BlockTables& tables = memory_.contents().tables;
  HEARTH_TRY(tables.update(device, step));
  if (tables.part().buffer != recording_->tables) {
    HEARTH_TRY(prepare());
  }
  recording_->step.write(step);
  HEARTH_ASSIGN(const Ticket ticket, device.submit(*recording_->commands));

  const auto n_logits = static_cast<std::size_t>(step.n_logit_rows() *
                                                 plan_.values[graph::index(plan_.logits)].features);
  const auto logits = recording_->host_logits->host().first(n_logits * sizeof(float));
  if (!logits.empty()) {
    const BufferPart& from = recording_->device_logits;
    HEARTH_TRY(device.download(logits, {from.buffer, from.offset, logits.size_bytes()}));
  }
  HEARTH_ASSIGN(bool is_done, device.wait(ticket, no_time));
  while (!is_done) {
    HEARTH_ASSIGN(is_done, device.wait(ticket, std::chrono::seconds(1)));
  }
  return std::span(as_array<const float>(logits.data()), n_logits);
}

}  // namespace hearth::backend::gpu
