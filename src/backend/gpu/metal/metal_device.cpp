#include "backend/gpu/metal/metal_device.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <unistd.h>

#include "backend/gpu/metal/driver.h"
#include "backend/gpu/metal/encoder.h"
#include "backend/gpu/metal/metal_buffer.h"
#include "backend/gpu/metal/metal_source.h"
#include "backend/gpu/metal/timeline.h"
#include "base/assert.h"
#include "base/fail.h"

namespace hearth::backend::gpu::metal {
namespace {

/// A list with the pipelines of its dispatches, in order. Metal has nothing that replays commands
/// with parameters in them, so they are written anew at every submission.
struct MetalCommands final : PreparedCommands {
  MetalCommands(CommandList commands, CommandCounts command_counts)
      : list(std::move(commands)), n(command_counts) {}
  [[nodiscard]] CommandCounts counts() const override { return n; }

  CommandList list;  // keeps its buffers alive
  CommandCounts n;
  std::vector<Object> pipelines;  // the device's
};

class MetalDevice final : public Device {
 public:
  explicit MetalDevice(std::shared_ptr<Driver> driver);

  [[nodiscard]] const Capabilities& capabilities() const override { return capabilities_; }
  [[nodiscard]] Counters counters() const override {
    Counters counters = counters_;
    counters.allocated_bytes = driver_->allocated_bytes;
    return counters;
  }
  [[nodiscard]] std::uint64_t free_bytes() const override {
    const UInteger budget = send().working_set_bytes(driver_->device());
    return budget - std::min(send().allocated_bytes(driver_->device()), budget);
  }
  [[nodiscard]] bool is_lost() const override { return timeline_.is_lost(); }

  Result<std::shared_ptr<Buffer>> allocate(std::uint64_t bytes, std::string_view label) override;
  Result<std::shared_ptr<Buffer>> allocate_host(std::uint64_t bytes,
                                                std::string_view label) override {
    return allocate(bytes, label);
  }
  Result<std::shared_ptr<Buffer>> wrap(std::span<std::byte> memory,
                                       std::string_view label) override;
  Result<void> compile(KernelId kernel) override;
  Result<std::unique_ptr<PreparedCommands>> prepare(const CommandList& list) override;
  Result<Ticket> submit(PreparedCommands& commands) override;
  Result<bool> wait(Ticket ticket, std::chrono::nanoseconds timeout) override {
    HEARTH_TRY(check_alive());
    return timeline_.wait(static_cast<UInteger>(ticket), timeout);
  }
  Result<void> copy(const BufferPart& to, const BufferPart& from) override;
  Result<void> upload(const BufferPart& to, std::span<const std::byte> from) override;
  Result<void> download(std::span<std::byte> to, const BufferPart& from) override;

  /// Runs a little work of no consequence: it shows that the GPU works, and without any Metal does
  /// not give wired memory back.
  Result<void> try_out();

 private:
  [[nodiscard]] Result<void> check_alive() const;
  [[nodiscard]] Result<void> check_room(std::uint64_t bytes, std::string_view label) const;
  Result<Object> pipeline_of(KernelId kernel);
  [[nodiscard]] const Messages& send() const { return driver_->messages(); }

  std::shared_ptr<Driver> driver_;
  Capabilities capabilities_;
  Counters counters_;
  std::map<KernelId, Owned> pipelines_;
  Timeline timeline_;  // ends first: work uses the rest
};

MetalDevice::MetalDevice(std::shared_ptr<Driver> driver)
    : driver_(std::move(driver)), timeline_(driver_) {
  const Object device = driver_->device();
  capabilities_ = {
      .name = driver_->to_text(send().device_name(device)),
      .architecture = driver_->to_text(send().architecture_name(send().architecture(device))),
      .memory_bytes = send().working_set_bytes(device),
      .is_host_visible = true,
      .wraps_host_memory = true};
}

Result<void> MetalDevice::check_alive() const {
  if (is_lost()) {
    return fail(ErrorCode::internal, "metal: {} is lost, open it anew", capabilities_.name);
  }
  return {};
}

/// Metal gives memory that it does not have, and fails when it is used; so the budget is ours to
/// keep. It is read anew, because people can change it.
Result<void> MetalDevice::check_room(std::uint64_t bytes, std::string_view label) const {
  if (bytes > free_bytes()) {
    return fail(ErrorCode::out_of_memory,
                "metal: no memory for buffer '{}' of {} bytes: {} of {} bytes are in use", label,
                bytes, send().allocated_bytes(driver_->device()),
                send().working_set_bytes(driver_->device()));
  }
  if (const UInteger largest = send().max_buffer_bytes(driver_->device()); bytes > largest) {
    return fail(ErrorCode::out_of_memory,
                "metal: no memory for buffer '{}' of {} bytes: a buffer has at most {}", label,
                bytes, largest);
  }
  return {};
}

Result<std::shared_ptr<Buffer>> MetalDevice::allocate(std::uint64_t bytes, std::string_view label) {
  HEARTH_TRY(check_alive());
  const Pool pool(driver_->runtime());
  HEARTH_TRY(check_room(bytes, label));
  Owned buffer = driver_->own(
      send().new_buffer(driver_->device(), bytes, ResourceOptions::shared_and_untracked));
  if (!buffer) {
    return fail(ErrorCode::out_of_memory, "metal: no memory for buffer '{}' of {} bytes", label,
                bytes);
  }
  const std::span memory(static_cast<std::byte*>(send().contents(buffer.get())),
                         static_cast<std::size_t>(bytes));
  return std::make_shared<MetalBuffer>(driver_, std::move(buffer), memory, bytes, label);
}

Result<std::shared_ptr<Buffer>> MetalDevice::wrap(std::span<std::byte> memory,
                                                  std::string_view label) {
  HEARTH_TRY(check_alive());
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  if (memory.empty() || reinterpret_cast<std::uintptr_t>(memory.data()) % page != 0) {
    return fail(ErrorCode::invalid_argument,
                "metal: buffer '{}' cannot wrap {} bytes that do not begin at a page", label,
                memory.size());
  }
  const Pool pool(driver_->runtime());
  // Metal takes whole pages; what is behind the end of the last is mapped as well.
  const UInteger bytes = (memory.size() + page - 1) / page * page;
  HEARTH_TRY(check_room(bytes, label));
  Owned buffer = driver_->own(send().new_wrapping_buffer(driver_->device(), memory.data(), bytes,
                                                         ResourceOptions::shared_and_untracked,
                                                         /*deallocator=*/nullptr));
  if (!buffer) {
    return fail(ErrorCode::unsupported, "metal: buffer '{}' cannot wrap {} bytes of the host",
                label, memory.size());
  }
  return std::make_shared<MetalBuffer>(driver_, std::move(buffer), memory, /*counted_bytes=*/0,
                                       label);
}

Result<Object> MetalDevice::pipeline_of(KernelId kernel) {
  if (const auto found = pipelines_.find(kernel); found != pipelines_.end()) {
    return found->second.get();
  }
  const KernelInfo& info = kernel_info(kernel);
  HEARTH_ASSIGN(Owned pipeline, driver_->make_pipeline(std::string(info.name)));
  const UInteger n_threads = send().max_threads(pipeline.get());
  const UInteger n_lanes = send().simdgroup_lanes(pipeline.get());
  if (n_threads < info.max_threads || n_lanes != simdgroup_lanes) {
    return fail(ErrorCode::unsupported,
                "metal: kernel '{}' runs with {} threads in simdgroups of {}, expected {} in {}",
                info.name, n_threads, n_lanes, info.max_threads, simdgroup_lanes);
  }
  return pipelines_.emplace(kernel, std::move(pipeline)).first->second.get();
}

Result<void> MetalDevice::compile(KernelId kernel) {
  HEARTH_TRY(check_alive());
  const Pool pool(driver_->runtime());
  HEARTH_TRY(pipeline_of(kernel));
  return {};
}

/// Copies and fills of other numbers of bytes are not promised to work on macOS.
Result<void> check_words(std::string_view command, const BufferPart& part) {
  if (part.offset % 4 != 0 || part.bytes % 4 != 0) {
    return fail(ErrorCode::invalid_argument,
                "metal: {}: {} bytes at byte {} of buffer '{}', expected multiples of 4", command,
                part.bytes, part.offset, part.buffer->label());
  }
  return {};
}
Result<void> check_words(const CopyCommand& command) {
  HEARTH_TRY(check_words("copy", command.to));
  return check_words("copy", command.from);
}

Result<std::unique_ptr<PreparedCommands>> MetalDevice::prepare(const CommandList& list) {
  HEARTH_TRY(check_alive());
  HEARTH_ASSIGN(const CommandCounts counts, check_commands(list));
  const Pool pool(driver_->runtime());
  auto commands = std::make_unique<MetalCommands>(list, counts);
  for (const Command& command : list.commands()) {
    if (const auto* dispatch = std::get_if<DispatchCommand>(&command)) {
      HEARTH_ASSIGN(const Object pipeline, pipeline_of(dispatch->kernel));
      commands->pipelines.push_back(pipeline);
    } else if (const auto* copy = std::get_if<CopyCommand>(&command)) {
      HEARTH_TRY(check_words(*copy));
    } else if (const auto* fill = std::get_if<FillCommand>(&command)) {
      HEARTH_TRY(check_words("fill", fill->to));
    }
  }
  return commands;
}

Result<Ticket> MetalDevice::submit(PreparedCommands& commands) {
  HEARTH_TRY(check_alive());
  const auto* prepared = dynamic_cast<const MetalCommands*>(&commands);
  HEARTH_ASSERT(prepared != nullptr);  // of this device
  Encoder encoder(*driver_);
  driver_->settle_residency();
  auto pipeline = prepared->pipelines.begin();
  for (const Command& command : prepared->list.commands()) {
    if (const auto* dispatch = std::get_if<DispatchCommand>(&command)) {
      encoder.add(*dispatch, *pipeline++);
    } else if (const auto* copy = std::get_if<CopyCommand>(&command)) {
      encoder.add(*copy);
    } else if (const auto* fill = std::get_if<FillCommand>(&command)) {
      encoder.add(*fill);
    } else {
      encoder.add(BarrierCommand{});
    }
  }
  HEARTH_ASSIGN(const UInteger number, timeline_.hand_in(encoder, {}));
  ++counters_.submissions;
  counters_.dispatches += prepared->n.dispatches;
  counters_.barriers += prepared->n.barriers;
  return Ticket{number};
}

Result<void> MetalDevice::copy(const BufferPart& to, const BufferPart& from) {
  HEARTH_TRY(check_alive());
  HEARTH_TRY(check_copy(to, from));
  HEARTH_TRY(check_words({to, from}));
  Encoder encoder(*driver_);
  driver_->settle_residency();
  encoder.add(CopyCommand{to, from});
  HEARTH_TRY(timeline_.hand_in(encoder, {to, from}));
  return {};
}

Result<void> MetalDevice::upload(const BufferPart& to, std::span<const std::byte> from) {
  HEARTH_TRY(check_alive());
  HEARTH_TRY(check_transfer("upload", to, from.size()));
  HEARTH_TRY(timeline_.finish());
  std::ranges::copy(from, to.buffer->host().subspan(to.offset).begin());
  counters_.uploaded_bytes += from.size();
  return {};
}

Result<void> MetalDevice::download(std::span<std::byte> to, const BufferPart& from) {
  HEARTH_TRY(check_alive());
  HEARTH_TRY(check_transfer("download", from, to.size()));
  HEARTH_TRY(timeline_.finish());
  std::ranges::copy(from.buffer->host().subspan(from.offset, from.bytes), to.begin());
  counters_.downloaded_bytes += to.size();
  return {};
}

Result<void> MetalDevice::try_out() {
  HEARTH_ASSIGN(const auto buffer, allocate(256, "first work"));
  CommandList list;
  list.fill(whole(buffer), 0);
  HEARTH_ASSIGN(const auto commands, prepare(list));
  HEARTH_ASSIGN(const Ticket ticket, submit(*commands));
  HEARTH_ASSIGN(const bool is_done, wait(ticket, std::chrono::seconds(10)));
  if (!is_done) {
    return fail(ErrorCode::internal, "metal: {} does no work", capabilities_.name);
  }
  counters_ = {};
  return {};
}

}  // namespace

Result<std::unique_ptr<Device>> open_metal_device() {
  HEARTH_ASSIGN(const Runtime runtime, load_runtime());
  return open_metal_device(runtime, library_source());
}

Result<std::unique_ptr<Device>> open_metal_device(const Runtime& runtime,
                                                  const std::string& source) {
  HEARTH_ASSIGN(auto driver, Driver::open(runtime, source));
  const Pool pool(runtime);
  auto device = std::make_unique<MetalDevice>(std::move(driver));
  HEARTH_TRY(device->try_out());
  return device;
}

}  // namespace hearth::backend::gpu::metal
