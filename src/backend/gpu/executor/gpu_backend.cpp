#include "backend/gpu/executor/gpu_backend.h"

#include <utility>

#include "backend/gpu/cuda/cuda_device.h"
#include "backend/gpu/executor/gpu_executable.h"
#include "backend/gpu/executor/gpu_read_stream.h"
#include "base/fail.h"

namespace hearth::backend {
namespace gpu {
namespace {

class GpuSession final : public Session {
 public:
  explicit GpuSession(SessionMemory memory) : memory_(std::move(memory)) {}

  Result<std::unique_ptr<Executable>> compile(const plan::Plan& plan) override {
    HEARTH_ASSIGN(auto executable, GpuExecutable::create(plan, memory_));
    return std::unique_ptr<Executable>(std::move(executable));
  }

  void copy_state(std::int64_t from, std::int64_t to) override {
    if (from != to) {
      // A device that is lost says so at the next step.
      (void)memory_.device.copy(memory_.caches.slot(to), memory_.caches.slot(from));
    }
  }

  [[nodiscard]] MemoryUse memory() const override {
    const auto& descs = memory_.caches.descs();
    const auto size = [](const std::shared_ptr<Buffer>& buffer) {
      return buffer == nullptr ? 0 : static_cast<std::int64_t>(buffer->size_bytes());
    };
    return {
        memory_.device_weights.bytes(), descs.kv.bytes(), descs.states.bytes() + descs.rows.bytes(),
        size(memory_.arena) + size(memory_.scratch) + memory_.tables.bytes() + memory_.step_bytes};
  }
  [[nodiscard]] std::string description() const override {
    const auto mebibytes = [](std::int64_t bytes) {
      return static_cast<double>(bytes) / (1 << 20);
    };
    const auto weights = format("{:.1f} MiB of weights on the device, as the file stores them",
                                mebibytes(memory_.device_weights.bytes()));
    const auto& states = memory_.caches.descs().states;
    return states.bytes() == 0 ? weights
                               : format("{}; {} slots of {:.1f} MiB for recurrent state", weights,
                                        states.n_slots, mebibytes(states.bytes_per_slot()));
  }

 private:
  SessionMemory memory_;
};

class GpuBackend final : public Backend {
 public:
  explicit GpuBackend(std::unique_ptr<Device> device) : device_(std::move(device)) {}

  [[nodiscard]] std::string_view name() const override { return "gpu"; }
  [[nodiscard]] std::string description() const override {
    const Capabilities& card = device_->capabilities();
    return format("{} ({}), {} compute units, {:.1f} GiB", card.name, card.architecture,
                  card.compute_units, static_cast<double>(card.memory_bytes) / (1 << 30));
  }
  [[nodiscard]] plan::Options plan_options() const override {
    return {.fuse = true, .merged_launches = max_merged_launches};
  }
  /// Each of many experts gets a tile of rows only from long steps.
  [[nodiscard]] std::int64_t prompt_rows() const override {
    constexpr std::uint32_t many_units = 32;
    return device_->capabilities().compute_units >= many_units ? 2048 : 512;
  }
  [[nodiscard]] Result<void> check(const graph::WeightTable& weights) const override;

  Result<std::unique_ptr<Session>> open(const graph::WeightTable& weights,
                                        const graph::CacheDescs& caches) override {
    HEARTH_ASSIGN(auto device_weights, DeviceWeights::create(*device_, weights));
    HEARTH_ASSIGN(auto device_caches, DeviceCaches::create(*device_, caches));
    HEARTH_ASSIGN(auto tables, BlockTables::create(*device_, caches.kv.n_blocks));
    return std::make_unique<GpuSession>(SessionMemory{.device = *device_,
                                                      .weights = weights,
                                                      .device_weights = std::move(device_weights),
                                                      .caches = std::move(device_caches),
                                                      .tables = std::move(tables)});
  }
  Result<std::unique_ptr<ReadStream>> read_stream() override { return make_read_stream(*device_); }

 private:
  std::unique_ptr<Device> device_;
};

Result<void> GpuBackend::check(const graph::WeightTable& weights) const {
  std::uint64_t bytes = 0;
  for (const auto& [name, tensor, is_mapped] : weights) {
    bytes += tensor.data.size();
    if (tensor.shape.rank() > 1) {
      HEARTH_TRY(kernel_for("product_", tensor.dtype, format("tensor '{}'", name)));
    }
  }
  const std::uint64_t limit = device_->capabilities().memory_bytes / 10 * 9;
  if (bytes > limit) {
    return fail(ErrorCode::out_of_memory,
                "{}: the weights of {} bytes and what works with them do not fit into {} bytes",
                device_->capabilities().name, bytes, device_->capabilities().memory_bytes);
  }
  return {};
}

}  // namespace
}  // namespace gpu

std::unique_ptr<Backend> make_gpu_backend(std::unique_ptr<gpu::Device> device) {
  return std::make_unique<gpu::GpuBackend>(std::move(device));
}

Result<std::unique_ptr<Backend>> make_cuda_backend(int ordinal) {
  HEARTH_ASSIGN(auto device, gpu::cuda::open_cuda_device(ordinal));
  return make_gpu_backend(std::move(device));
}

}  // namespace hearth::backend
