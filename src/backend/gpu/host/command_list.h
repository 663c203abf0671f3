#pragma once
/// Work for a device, as data: recorded once, prepared once, submitted as often as wanted.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "backend/gpu/host/dispatch_rules.h"
#include "backend/gpu/host/kernel_info.h"
#include "backend/gpu/kernels/registry.h"

namespace hearth::backend::gpu {

/// Bytes at a multiple of which buffers begin.
inline constexpr std::int64_t buffer_alignment = 256;

/// Memory of a device. Freed with the last owner; who waits for work that uses it, owns it.
class Buffer {
 public:
  virtual ~Buffer() = default;

  [[nodiscard]] virtual std::string_view label() const = 0;
  [[nodiscard]] virtual AddressRange addresses() const = 0;
  /// The same memory as the processor sees it; empty where it does not.
  [[nodiscard]] virtual std::span<std::byte> host() = 0;

  [[nodiscard]] std::uint64_t size_bytes() const { return addresses().end - addresses().begin; }
};

/// Part of a buffer. Kernels may touch nothing else, and hazards are found by it, so the length of
/// what is meant belongs here.
struct BufferPart {
  std::shared_ptr<Buffer> buffer;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;

  [[nodiscard]] AddressRange addresses() const {
    const std::uint64_t begin = buffer->addresses().begin + offset;
    return {begin, begin + bytes};
  }
};

/// All of a buffer.
[[nodiscard]] inline BufferPart whole(std::shared_ptr<Buffer> buffer) {
  const std::uint64_t bytes = buffer->size_bytes();
  return {std::move(buffer), 0, bytes};
}

struct DispatchCommand {
  KernelId kernel{};
  std::vector<BufferPart> buffers;
  std::vector<std::byte> params;
  Dim3 grid;  // threadgroups
  Dim3 group_size;
};
/// What earlier commands wrote is visible to later ones, and what they read may be overwritten.
struct BarrierCommand {};
struct CopyCommand {
  BufferPart to;
  BufferPart from;  // of the same length
};
struct FillCommand {
  BufferPart to;
  std::uint8_t value = 0;
};
using Command = std::variant<DispatchCommand, BarrierCommand, CopyCommand, FillCommand>;

/// Commands in order. Between two barriers a device may run them at the same time.
class CommandList {
 public:
  void add(Command command) { commands_.push_back(std::move(command)); }
  template <class Params>
  void dispatch(KernelId kernel, std::vector<BufferPart> buffers, const Params& params, Dim3 grid,
                Dim3 group_size) {
    static_assert(std::is_trivially_copyable_v<Params>);
    const auto bytes = std::as_bytes(std::span(&params, 1));
    add(DispatchCommand{
        kernel, std::move(buffers), {bytes.begin(), bytes.end()}, grid, group_size});
  }
  void barrier() { commands_.push_back(BarrierCommand{}); }
  void copy(BufferPart to, BufferPart from) {
    commands_.push_back(CopyCommand{std::move(to), std::move(from)});
  }
  void fill(BufferPart to, std::uint8_t value) {
    commands_.push_back(FillCommand{std::move(to), value});
  }

  [[nodiscard]] std::span<const Command> commands() const { return commands_; }

 private:
  std::vector<Command> commands_;
};

}  // namespace hearth::backend::gpu
