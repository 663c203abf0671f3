#include "backend/gpu/executor/gpu_executable.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/fail.h"

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
constexpr std::int64_t word_bytes = 4;

}  // namespace

GpuExecutable::GpuExecutable(const plan::Plan& plan, SessionMemory& memory)
    : Tenant(memory.owner()), plan_(plan), memory_(memory) {
  started_.reserve(recordings_.size());
}

Result<std::unique_ptr<GpuExecutable>> GpuExecutable::create(const plan::Plan& plan,
                                                             SessionMemory& memory) {
  std::unique_ptr<GpuExecutable> executable(new GpuExecutable(plan, memory));
  HEARTH_TRY(memory.make_ready());
  HEARTH_TRY(executable->place(0));
  return executable;
}

GpuExecutable::~GpuExecutable() {
  while (!started_.empty()) {
    (void)finish();  // commands may not end before their work
  }
}

void GpuExecutable::let_go() {
  recordings_ = {};
  chosen_.reset();
  started_.clear();
}

Result<void> GpuExecutable::place(std::size_t turn) {
  Device& device = memory_.device();
  auto& shared = memory_.contents();
  HEARTH_ASSIGN(auto step, memory_.step_memory(turn, plan_.bucket, ropes_of(plan_)));
  HEARTH_TRY(grow(device, shared.arena, plan_.cost.arena_bytes, "activations"));
  HEARTH_TRY(grow(device, chosen_, result().rows * word_bytes, "chosen tokens"));
  const auto result_bytes =
      static_cast<std::uint64_t>(result().rows * result().features) * sizeof(float);
  std::shared_ptr<Buffer> host_result = copies_result() ? nullptr : shared.logits;
  if (host_result == nullptr || host_result->size_bytes() < result_bytes) {
    HEARTH_ASSIGN(host_result, device.allocate_host(result_bytes, "result"));
  }
  if (!copies_result()) {
    shared.logits = host_result;
  }
  Recording recording{.step = std::move(step), .host_result = std::move(host_result)};
  HEARTH_TRY(prepare(recording));
  recordings_[turn] = std::move(recording);
  return {};
}

Result<void> GpuExecutable::prepare(Recording& recording) {
  Device& device = memory_.device();
  auto& shared = memory_.contents();
  // The first recording only measures: scratch memory lies wherever.
  HEARTH_TRY(grow(device, shared.scratch, 1, "scratch"));
  CommandList measured;
  HEARTH_ASSIGN(const auto scratch_bytes, record(measured, recording));
  HEARTH_TRY(grow(device, shared.scratch, scratch_bytes, "scratch"));
  CommandList list;
  HEARTH_TRY(record(list, recording));
  kernels_.clear();
  for (const Command& command : list.commands()) {
    if (const auto* dispatch = std::get_if<DispatchCommand>(&command)) {
      kernels_.push_back(kernel_info(dispatch->kernel).name);
    }
  }
  HEARTH_ASSIGN(recording.commands, device.prepare(list));
  recording.tables = shared.tables.part().buffer;
  return {};
}

/// Of logits, most rows of the capacity are no result: only those of a step are fetched.
bool GpuExecutable::copies_result() const {
  constexpr std::int64_t few_numbers = 16;
  return result().features <= few_numbers;
}

Result<std::int64_t> GpuExecutable::record(CommandList& list, Recording& recording) const {
  const auto& shared = memory_.contents();
  const RecordContext context{.plan = plan_,
                              .device = memory_.device().capabilities(),
                              .weights = memory_.weight_table(),
                              .device_weights = shared.weights,
                              .caches = shared.caches,
                              .tables = shared.tables,
                              .step = *recording.step,
                              .arena = whole(shared.arena),
                              .scratch = whole(shared.scratch),
                              .chosen = whole(chosen_)};
  Recorder recorder(context, list);
  recording.step->record_copy(list);
  for (std::span<const plan::Launch> left = plan_.launches; !left.empty();) {
    HEARTH_ASSIGN(const std::size_t n_recorded, recorder.record(left));
    left = left.subspan(n_recorded);
  }
  recording.device_result = recorder.value(plan_.result);
  if (copies_result()) {
    list.barrier();
    const BufferPart& from = recording.device_result;
    list.copy({recording.host_result, 0, from.bytes}, from);
  }
  return recorder.scratch_bytes();
}

Result<std::span<const float>> GpuExecutable::run(const graph::StepView& step) {
  HEARTH_ASSERT(started_.empty());
  HEARTH_TRY(start(step));
  return finish();
}

Result<void> GpuExecutable::start(const graph::StepView& step) {
  HEARTH_ASSERT(
      step.n_rows() <= plan_.bucket.rows && step.n_logit_rows() <= plan_.bucket.logit_rows &&
      started_.size() < recordings_.size() && (step.token_sources.empty() || !started_.empty()));
  HEARTH_TRY(memory_.make_ready());
  if (!step.token_sources.empty() && started_.empty()) {
    return fail(ErrorCode::internal, "the device was lost with the step before");
  }
  const std::size_t turn = started_.empty() ? 0 : 1 - started_.back().turn;
  if (!recordings_[turn]) {
    HEARTH_TRY(place(turn));
  }
  Recording& recording = *recordings_[turn];
  Device& device = memory_.device();
  BlockTables& tables = memory_.contents().tables;
  HEARTH_TRY(tables.update(device, step));
  if (tables.part().buffer != recording.tables) {
    HEARTH_TRY(prepare(recording));
  }
  recording.step->write(step);
  HEARTH_ASSIGN(const Ticket ticket, device.submit(*recording.commands));
  started_.push_back(
      {turn, ticket, static_cast<std::size_t>(step.n_logit_rows() * result().features)});
  return {};
}

Result<std::span<const float>> GpuExecutable::finish() {
  if (started_.empty()) {
    return fail(ErrorCode::internal, "the device was lost with the step");
  }
  const auto [turn, ticket, n_numbers] = started_.front();
  started_.erase(started_.begin());
  Device& device = memory_.device();
  const Recording& recording = *recordings_[turn];
  const auto numbers = recording.host_result->host().first(n_numbers * sizeof(float));
  if (!numbers.empty() && !copies_result()) {
    const BufferPart& from = recording.device_result;
    HEARTH_TRY(device.download(numbers, {from.buffer, from.offset, numbers.size_bytes()}));
  }
  HEARTH_ASSIGN(bool is_done, device.wait(ticket, no_time));
  while (!is_done) {
    HEARTH_ASSIGN(is_done, device.wait(ticket, std::chrono::seconds(1)));
  }
  return std::span(as_array<const float>(numbers.data()), n_numbers);
}

}  // namespace hearth::backend::gpu
