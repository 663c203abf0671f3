#include "backend/gpu/emulator/emulator_device.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <new>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "backend/gpu/emulator/emulator.h"
#include "backend/gpu/emulator/random_order.h"
#include "base/assert.h"
#include "base/fail.h"

namespace hearth::backend::gpu::emulator {
namespace {

constexpr std::uintptr_t page_bytes = 4096;

/// Bytes in use, shared by the device and its buffers.
using MemoryAccount = std::shared_ptr<std::uint64_t>;

class EmulatorBuffer final : public Buffer {
 public:
  /// Wraps memory of somebody else.
  EmulatorBuffer(std::span<std::byte> memory, std::string_view label)
      : label_(label), memory_(memory) {}
  /// Owns memory that operator new gave.
  EmulatorBuffer(std::span<std::byte> memory, std::string_view label, MemoryAccount account)
      : label_(label), memory_(memory), account_(std::move(account)) {
    *account_ += memory.size();
  }
  ~EmulatorBuffer() override {
    if (account_) {
      *account_ -= memory_.size();
      ::operator delete(memory_.data(), std::align_val_t(buffer_alignment));
    }
  }

  [[nodiscard]] std::string_view label() const override { return label_; }
  [[nodiscard]] AddressRange addresses() const override {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory_.data());
    return {begin, begin + memory_.size()};
  }
  [[nodiscard]] std::span<std::byte> host() override { return memory_; }

 private:
  std::string label_;
  std::span<std::byte> memory_;
  MemoryAccount account_;  // null for memory of somebody else
};

std::span<std::byte> memory_of(const BufferPart& part) {
  return part.buffer->host().subspan(part.offset, part.bytes);
}

struct EmulatorCommands final : PreparedCommands {
  EmulatorCommands(CommandList commands, CommandCounts command_counts)
      : list(std::move(commands)), n(command_counts) {}
  [[nodiscard]] CommandCounts counts() const override { return n; }

  CommandList list;
  CommandCounts n;
};

/// What buffers said before the first kernel of a list: all that an EARLY_KERNEL can count on until
/// it has waited, because kernels in front of it may not have begun.
class EarlyView {
 public:
  /// Copies the buffers that kernels of the list write, of those that its early kernels have.
  void take(std::span<const Command> list) {
    copies_.clear();
    std::set<const Buffer*> written;
    for (const auto& [dispatch, kernel] : dispatches(list)) {
      for (std::size_t i = 0; i < dispatch->buffers.size(); ++i) {
        if (kernel->info.buffer_list[i].written) {
          written.insert(dispatch->buffers[i].buffer.get());
        }
      }
    }
    for (const auto& [dispatch, kernel] : dispatches(list)) {
      for (const BufferPart& part : dispatch->buffers) {
        if (kernel->is_early && written.contains(part.buffer.get()) &&
            !copies_.contains(part.buffer.get())) {
          const auto memory = part.buffer->host();
          copies_[part.buffer.get()].assign(memory.begin(), memory.end());
        }
      }
    }
  }

  /// Null for a buffer that no kernel of the list writes.
  [[nodiscard]] std::byte* of(const BufferPart& part) {
    const auto copy = copies_.find(part.buffer.get());
    return copy == copies_.end() ? nullptr : copy->second.data() + part.offset;
  }

 private:
  using Launch = std::pair<const DispatchCommand*, const EmulatedKernel*>;
  static std::vector<Launch> dispatches(std::span<const Command> list) {
    std::vector<Launch> result;
    for (const Command& command : list) {
      if (const auto* dispatch = std::get_if<DispatchCommand>(&command)) {
        result.emplace_back(dispatch, all_kernels()[static_cast<std::size_t>(dispatch->kernel)]);
      }
    }
    return result;
  }

  std::map<const Buffer*, std::vector<std::byte>> copies_;
};

class EmulatorDevice final : public Device {
 public:
  explicit EmulatorDevice(const EmulatorDeviceOptions& options)
      : options_(options), emulator_({.n_workers = options.n_workers, .seed = options.seed}) {
    capabilities_ = {.name = "emulator",
                     .architecture = "emulator",
                     .memory_bytes = options.memory_bytes,
                     .compute_units = static_cast<std::uint32_t>(options.n_workers),
                     .is_host_visible = true,
                     .wraps_host_memory = true,
                     .has_integer_tiles = options.has_integer_tiles};
  }

  [[nodiscard]] const Capabilities& capabilities() const override { return capabilities_; }
  [[nodiscard]] Counters counters() const override {
    Counters counters = counters_;
    counters.allocated_bytes = *account_;
    return counters;
  }
  [[nodiscard]] std::uint64_t free_bytes() const override {
    return options_.memory_bytes - *account_;
  }
  [[nodiscard]] bool is_lost() const override { return is_lost_; }

  Result<std::shared_ptr<Buffer>> allocate(std::uint64_t bytes, std::string_view label) override;
  Result<std::shared_ptr<Buffer>> allocate_host(std::uint64_t bytes,
                                                std::string_view label) override {
    return allocate(bytes, label);
  }
  Result<std::shared_ptr<Buffer>> wrap(std::span<std::byte> memory,
                                       std::string_view label) override;
  Result<void> compile(KernelId /*kernel*/) override { return {}; }
  Result<std::unique_ptr<PreparedCommands>> prepare(const CommandList& list) override;
  Result<Ticket> submit(PreparedCommands& commands) override;
  Result<bool> wait(Ticket ticket, std::chrono::nanoseconds timeout) override;
  Result<void> copy(const BufferPart& to, const BufferPart& from) override;
  Result<void> upload(const BufferPart& to, std::span<const std::byte> from) override;
  Result<void> download(std::span<std::byte> to, const BufferPart& from) override;

 private:
  /// Submitted commands or a copy, not yet done.
  struct Work {
    std::uint64_t ticket;
    std::variant<const EmulatorCommands*, CopyCommand> commands;
  };

  void do_until(std::uint64_t ticket);
  void do_all() { do_until(std::numeric_limits<std::uint64_t>::max()); }
  Result<void> run(const Work& work);
  Result<void> run(const EmulatorCommands& commands);
  Result<void> run_segment(std::span<const Command> segment);
  Result<void> run_one(const DispatchCommand& command);
  Result<void> run_one(const CopyCommand& command);
  Result<void> run_one(const FillCommand& command);
  Result<void> run_one(const BarrierCommand& /*barrier*/) { return {}; }
  [[nodiscard]] Result<void> check_alive() const;

  EmulatorDeviceOptions options_;
  Capabilities capabilities_;
  Counters counters_;
  MemoryAccount account_ = std::make_shared<std::uint64_t>(0);
  EarlyView early_;
  Emulator emulator_;
  std::uint64_t n_segments_ = 0;
  std::deque<Work> pending_;
  std::optional<Error> failure_;  // not yet told by wait()
  bool is_lost_ = false;
};

Result<std::shared_ptr<Buffer>> EmulatorDevice::allocate(std::uint64_t bytes,
                                                         std::string_view label) {
  HEARTH_TRY(check_alive());
  const std::uint64_t in_use = *account_;
  void* memory = bytes > 0 && bytes <= options_.memory_bytes - in_use
                     ? ::operator new(bytes, std::align_val_t(buffer_alignment), std::nothrow)
                     : nullptr;
  if (memory == nullptr) {
    return fail(ErrorCode::out_of_memory,
                "emulator: no memory for buffer '{}' of {} bytes: {} of {} bytes are in use", label,
                bytes, in_use, options_.memory_bytes);
  }
  std::memset(memory, 0xff, bytes);
  return std::make_shared<EmulatorBuffer>(std::span(static_cast<std::byte*>(memory), bytes), label,
                                          account_);
}

Result<std::shared_ptr<Buffer>> EmulatorDevice::wrap(std::span<std::byte> memory,
                                                     std::string_view label) {
  HEARTH_TRY(check_alive());
  if (memory.empty() || reinterpret_cast<std::uintptr_t>(memory.data()) % page_bytes != 0) {
    return fail(ErrorCode::invalid_argument,
                "emulator: buffer '{}' cannot wrap {} bytes that do not begin at a page", label,
                memory.size());
  }
  return std::make_shared<EmulatorBuffer>(memory, label);
}

Result<std::unique_ptr<PreparedCommands>> EmulatorDevice::prepare(const CommandList& list) {
  HEARTH_TRY(check_alive());
  HEARTH_ASSIGN(const CommandCounts counts, check_commands(list));
  return std::make_unique<EmulatorCommands>(list, counts);
}

Result<Ticket> EmulatorDevice::submit(PreparedCommands& commands) {
  HEARTH_TRY(check_alive());
  const auto* prepared = dynamic_cast<const EmulatorCommands*>(&commands);
  HEARTH_ASSERT(prepared != nullptr);  // of this device
  const auto ticket = static_cast<std::uint64_t>(++counters_.submissions);
  pending_.push_back({ticket, prepared});
  if (!options_.is_late) {
    do_all();
  }
  return Ticket{ticket};
}

void EmulatorDevice::do_until(std::uint64_t ticket) {
  while (!pending_.empty() && pending_.front().ticket <= ticket) {
    const Work work = std::move(pending_.front());
    pending_.pop_front();
    if (auto done = run(work); !done) {
      failure_ = failure_ ? failure_ : std::optional(std::move(done).error());
    }
  }
}

Result<void> EmulatorDevice::run(const Work& work) {
  if (const auto* copy = std::get_if<CopyCommand>(&work.commands)) {
    return run_one(*copy);
  }
  const auto number = static_cast<std::int64_t>(work.ticket) - 1;
  if (number == options_.failing_submission) {
    is_lost_ = options_.loses_device;
    return fail(ErrorCode::internal, "emulator: submission {} fails as asked", number);
  }
  return is_lost_ ? Result<void>() : run(*std::get<const EmulatorCommands*>(work.commands));
}

Result<bool> EmulatorDevice::wait(Ticket ticket, std::chrono::nanoseconds /*timeout*/) {
  do_until(static_cast<std::uint64_t>(ticket));
  if (failure_) {
    return Failure(*std::exchange(failure_, std::nullopt));
  }
  HEARTH_TRY(check_alive());
  return true;
}

Result<void> EmulatorDevice::run(const EmulatorCommands& commands) {
  counters_.dispatches += commands.n.dispatches;
  counters_.barriers += commands.n.barriers;
  const auto all = commands.list.commands();
  auto begin = all.begin();
  bool has_view = false;
  while (begin != all.end()) {
    const auto is_barrier = [](const Command& command) {
      return std::holds_alternative<BarrierCommand>(command);
    };
    const auto end = std::find_if(begin, all.end(), is_barrier);
    // Copies in front of the first kernel have ended before any kernel begins.
    const bool has_kernel = std::any_of(begin, end, [](const Command& command) {
      return std::holds_alternative<DispatchCommand>(command);
    });
    if (has_kernel && !has_view) {
      early_.take({begin, all.end()});
      has_view = true;
    }
    HEARTH_TRY(run_segment({begin, end}));
    begin = end == all.end() ? end : end + 1;
  }
  return {};
}

/// Commands without a barrier between them, in any order.
Result<void> EmulatorDevice::run_segment(std::span<const Command> segment) {
  std::vector<std::size_t> order(segment.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  ++n_segments_;
  put_in_random_order<std::size_t>(
      order, options_.seed == 0 ? 0 : scramble(options_.seed ^ scramble(n_segments_)));
  for (const std::size_t i : order) {
    HEARTH_TRY(std::visit([this](const auto& command) { return run_one(command); }, segment[i]));
  }
  return {};
}

Result<void> EmulatorDevice::run_one(const DispatchCommand& command) {
  const EmulatedKernel& kernel = *all_kernels()[static_cast<std::size_t>(command.kernel)];
  std::vector<MemoryRange> buffers;
  for (std::size_t i = 0; i < command.buffers.size(); ++i) {
    const auto memory = memory_of(command.buffers[i]);
    buffers.push_back({memory.data(), memory.size(), kernel.info.buffer_list[i].name,
                       kernel.is_early ? early_.of(command.buffers[i]) : nullptr});
  }
  return emulator_.run(kernel, buffers, command.params, command.grid, command.group_size);
}

Result<void> EmulatorDevice::run_one(const CopyCommand& command) {
  std::ranges::copy(memory_of(command.from), memory_of(command.to).begin());
  return {};
}

Result<void> EmulatorDevice::run_one(const FillCommand& command) {
  std::ranges::fill(memory_of(command.to), std::byte{command.value});
  return {};
}

Result<void> EmulatorDevice::copy(const BufferPart& to, const BufferPart& from) {
  HEARTH_TRY(check_alive());
  HEARTH_TRY(check_copy(to, from));
  // Before whatever is submitted next.
  pending_.push_back(
      {static_cast<std::uint64_t>(counters_.submissions) + 1, CopyCommand{to, from}});
  if (!options_.is_late) {
    do_all();
  }
  return {};
}

Result<void> EmulatorDevice::upload(const BufferPart& to, std::span<const std::byte> from) {
  HEARTH_TRY(check_alive());
  HEARTH_TRY(check_transfer("upload", to, from.size()));
  do_all();
  std::ranges::copy(from, memory_of(to).begin());
  counters_.uploaded_bytes += from.size();
  return {};
}

Result<void> EmulatorDevice::download(std::span<std::byte> to, const BufferPart& from) {
  HEARTH_TRY(check_alive());
  HEARTH_TRY(check_transfer("download", from, to.size()));
  do_all();
  std::ranges::copy(memory_of(from), to.begin());
  counters_.downloaded_bytes += to.size();
  return {};
}

Result<void> EmulatorDevice::check_alive() const {
  if (is_lost_) {
    return fail(ErrorCode::internal, "emulator: the device is lost, open it anew");
  }
  return {};
}

}  // namespace

std::unique_ptr<Device> open_emulator_device(const EmulatorDeviceOptions& options) {
  return std::make_unique<EmulatorDevice>(options);
}

}  // namespace hearth::backend::gpu::emulator
