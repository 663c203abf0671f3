#include "backend/gpu/executor/gpu_read_stream.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "backend/gpu/kernels/read_stream.h"
#include "base/fail.h"

namespace hearth::backend::gpu {
namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{2} << 30;  // far above any cache
constexpr std::uint64_t piece_bytes = 16;
constexpr u32 stream_threads = 256;
constexpr u32 groups_per_unit = 8;  // as many as are resident at once
constexpr int n_reads = 4;          // one after another, so that starting the work counts little

/// Does prepared work and waits for it.
Result<void> run(Device& device, PreparedCommands& commands) {
  HEARTH_ASSIGN(const Ticket ticket, device.submit(commands));
  HEARTH_ASSIGN(const bool is_done, device.wait(ticket, std::chrono::seconds(60)));
  if (!is_done) {
    return fail(ErrorCode::internal, "{}: reading memory takes more than a minute",
                device.capabilities().name);
  }
  return {};
}

class GpuReadStream final : public ReadStream, private DeviceOwner::Tenant {
 public:
  GpuReadStream(DeviceOwner& owner, std::unique_ptr<PreparedCommands> commands, std::uint64_t bytes)
      : Tenant(owner), commands_(std::move(commands)), bytes_(bytes) {}

  Result<double> measure() override {
    if (commands_ == nullptr) {
      return fail(ErrorCode::internal, "the device was lost and with it what was to be read");
    }
    const auto start = std::chrono::steady_clock::now();
    HEARTH_TRY(run(owner_.device(), *commands_));
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    return static_cast<double>(bytes_) / seconds.count();
  }

 private:
  void let_go() override { commands_.reset(); }

  std::unique_ptr<PreparedCommands> commands_;
  std::uint64_t bytes_;  // that they read
};

}  // namespace

Result<std::unique_ptr<ReadStream>> make_read_stream(DeviceOwner& owner) {
  Device& device = owner.device();
  const Capabilities& capabilities = device.capabilities();
  const std::uint64_t bytes =
      std::min(most_bytes, capabilities.memory_bytes / 16) / piece_bytes * piece_bytes;
  const u32 n_groups = groups_per_unit * std::max(capabilities.compute_units, 1u);
  HEARTH_ASSIGN(auto words, device.allocate(bytes, "read stream"));
  HEARTH_ASSIGN(auto sums, device.allocate(n_groups * sizeof(u32), "read stream sums"));
  CommandList list;
  list.fill(whole(words), 1);
  HEARTH_ASSIGN(auto filling, device.prepare(list));
  HEARTH_TRY(run(device, *filling));
  CommandList reads;
  for (int i = 0; i < n_reads; ++i) {
    reads.barrier();
    reads.dispatch(KernelId::read_stream_u32, {whole(words), whole(sums)},
                   ReadStreamParams{bytes / piece_bytes}, {n_groups}, {stream_threads});
  }
  HEARTH_ASSIGN(auto commands, device.prepare(reads));
  return std::make_unique<GpuReadStream>(owner, std::move(commands), n_reads * bytes);
}

}  // namespace hearth::backend::gpu
