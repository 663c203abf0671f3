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
  HEARTH_ASSIGN(auto step, memory_.step_memory(plan_.bucket, ropes_of(plan_)));
  HEARTH_TRY(grow(device, shared.arena, plan_.cost.arena_bytes, "activations"));
  const auto result_bytes =
      static_cast<std::uint64_t>(result().rows * result().features) * sizeof(float);
  std::shared_ptr<Buffer> host_result = copies_result() ? nullptr : shared.logits;
  if (host_result == nullptr || host_result->size_bytes() < result_bytes) {
    HEARTH_ASSIGN(host_result, device.allocate_host(result_bytes, "result"));
  }
  if (!copies_result()) {
    shared.logits = host_result;
  }
  recording_ = Recording{.step = std::move(step), .host_result = std::move(host_result)};
  auto prepared = prepare();
  if (!prepared) {
    recording_.reset();
  }
  return prepared;
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

/// Of logits, most rows of the capacity are no result: only those of a step are fetched.
bool GpuExecutable::copies_result() const {
  constexpr std::int64_t few_numbers = 16;
  return result().features <= few_numbers;
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
                              .step = *recording_->step,
                              .arena = whole(shared.arena),
                              .scratch = whole(shared.scratch)};
  Recorder recorder(context, list);
  recording_->step->record_copy(list);
  for (std::span<const plan::Launch> left = plan_.launches; !left.empty();) {
    HEARTH_ASSIGN(const std::size_t n_recorded, recorder.record(left));
    left = left.subspan(n_recorded);
  }
  recording_->device_result = recorder.value(plan_.result);
  if (copies_result()) {
    list.barrier();
    const BufferPart& from = recording_->device_result;
    list.copy({recording_->host_result, 0, from.bytes}, from);
  }
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
  recording_->step->write(step);
  HEARTH_ASSIGN(const Ticket ticket, device.submit(*recording_->commands));

  const auto n_numbers = static_cast<std::size_t>(step.n_logit_rows() * result().features);
  const auto numbers = recording_->host_result->host().first(n_numbers * sizeof(float));
  if (!numbers.empty() && !copies_result()) {
    const BufferPart& from = recording_->device_result;
    HEARTH_TRY(device.download(numbers, {from.buffer, from.offset, numbers.size_bytes()}));
  }
  HEARTH_ASSIGN(bool is_done, device.wait(ticket, no_time));
  while (!is_done) {
    HEARTH_ASSIGN(is_done, device.wait(ticket, std::chrono::seconds(1)));
  }
  return std::span(as_array<const float>(numbers.data()), n_numbers);
}

}  // namespace hearth::backend::gpu
