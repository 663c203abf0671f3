#pragma once
/// A GPU, or what stands for one: emulator, CUDA and Metal implement this interface, and whoever
/// runs plans knows nothing else. No exceptions; memory that does not fit and work that fails are
/// ordinary results. Nothing blocks but wait(), upload() and download().

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "backend/gpu/host/command_list.h"
#include "backend/gpu/host/hazards.h"
#include "base/result.h"

namespace hearth::backend::gpu {

/// What a device is.
struct Capabilities {
  std::string name;          // "NVIDIA H200"
  std::string architecture;  // "sm_90", "applegpu_g16s", "emulator"
  std::uint64_t memory_bytes = 0;
  std::uint32_t compute_units = 0;  // 0: unknown
  bool is_host_visible = false;     // Buffer::host() is the memory itself
  bool wraps_host_memory = false;   // wrap() works: a mapped file needs no copy
  bool has_integer_tiles = false;   // products of tiles of bytes are instructions
};

/// What a device has done so far.
struct Counters {
  std::int64_t submissions = 0;
  std::int64_t dispatches = 0;
  std::int64_t barriers = 0;
  std::uint64_t allocated_bytes = 0;  // now
  std::uint64_t uploaded_bytes = 0;
  std::uint64_t downloaded_bytes = 0;

  bool operator==(const Counters&) const = default;
};

/// Commands in the form in which their device replays them; keeps the buffers that they use alive.
/// Must not end before work that was submitted from it, nor after its device.
class PreparedCommands {
 public:
  virtual ~PreparedCommands() = default;
  [[nodiscard]] virtual CommandCounts counts() const = 0;
};

/// A point on the device's time line. Work is done in the order of submission.
enum class Ticket : std::uint64_t {};

/// One thread at a time. Prepared commands may not outlive it; buffers may.
class Device {
 public:
  virtual ~Device() = default;

  [[nodiscard]] virtual const Capabilities& capabilities() const = 0;
  [[nodiscard]] virtual Counters counters() const = 0;
  /// Bytes that can be allocated now, about; other programs may use the device too.
  [[nodiscard]] virtual std::uint64_t free_bytes() const = 0;

  /// Memory of at least one byte, at a multiple of buffer_alignment. Its contents are undefined.
  /// Errors: out_of_memory, with what was asked for, what is in use and what there is.
  virtual Result<std::shared_ptr<Buffer>> allocate(std::uint64_t bytes, std::string_view label) = 0;
  /// Memory of the host, of at least one byte, that the device copies from and to by itself:
  /// Buffer::host() is its contents. For what changes with every submission. Errors: out_of_memory.
  virtual Result<std::shared_ptr<Buffer>> allocate_host(std::uint64_t bytes,
                                                        std::string_view label) = 0;
  /// Memory of the host as a buffer, without a copy; it must outlive the buffer. Errors:
  /// unsupported; invalid_argument unless it begins at a page; out_of_memory.
  virtual Result<std::shared_ptr<Buffer>> wrap(std::span<std::byte> memory,
                                               std::string_view label) = 0;

  /// Compiles a kernel, if prepare() would otherwise be the first to need it.
  /// Errors: unsupported, with what the device's compiler says.
  virtual Result<void> compile(KernelId kernel) = 0;
  /// Checks the list (check_commands) and makes it ready to be submitted many times.
  /// Errors: invalid_argument for a list that breaks the rules; those of compile().
  virtual Result<std::unique_ptr<PreparedCommands>> prepare(const CommandList& list) = 0;

  /// Starts work, after all work submitted before. Errors: internal when the device is lost.
  virtual Result<Ticket> submit(PreparedCommands& commands) = 0;
  /// True once everything up to the ticket is done, false on time-out.
  /// Errors: internal when work up to the ticket failed, out_of_memory when that was why; each
  /// failure is told once.
  virtual Result<bool> wait(Ticket ticket, std::chrono::nanoseconds timeout) = 0;

  /// Starts a copy, after all work submitted before.
  /// Errors: invalid_argument for parts outside their buffers, of different length, or that
  /// overlap; internal when the device is lost.
  virtual Result<void> copy(const BufferPart& to, const BufferPart& from) = 0;
  /// Copies to and from the device, after all work submitted before.
  /// Errors: invalid_argument for a part outside its buffer, internal when the device failed.
  virtual Result<void> upload(const BufferPart& to, std::span<const std::byte> from) = 0;
  virtual Result<void> download(std::span<std::byte> to, const BufferPart& from) = 0;

  /// After that every call fails: the device has to be opened anew, with all that was on it.
  [[nodiscard]] virtual bool is_lost() const = 0;
};

}  // namespace hearth::backend::gpu
