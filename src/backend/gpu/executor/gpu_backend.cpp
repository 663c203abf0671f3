#include "backend/gpu/executor/gpu_backend.h"

#include <utility>

#include "backend/gpu/cuda/cuda_device.h"
#include "backend/gpu/executor/gpu_executable.h"
#include "backend/gpu/executor/gpu_read_stream.h"
#include "backend/gpu/executor/session_memory.h"
#include "backend/gpu/metal/metal_device.h"
#include "base/fail.h"

namespace hearth::backend {
namespace gpu {
namespace {

class GpuSession final : public Session {
 public:
  explicit GpuSession(std::unique_ptr<SessionMemory> memory) : memory_(std::move(memory)) {}

  Result<std::unique_ptr<Executable>> compile(const plan::Plan& plan) override {
    HEARTH_ASSIGN(auto executable, GpuExecutable::create(plan, *memory_));
    return std::unique_ptr<Executable>(std::move(executable));
  }

  void copy_state(std::int64_t from, std::int64_t to) override {
    if (from != to && memory_->has_contents()) {
      // A device that is lost says so at the next step.
      const DeviceCaches& caches = memory_->contents().caches;
      (void)memory_->device().copy(caches.slot(to), caches.slot(from));
    }
  }

  [[nodiscard]] MemoryUse memory() const override {
    if (!memory_->has_contents()) {
      return {};
    }
    const auto& descs = memory_->cache_descs();
    const auto& contents = memory_->contents();
    const auto size = [](const std::shared_ptr<Buffer>& buffer) {
      return buffer == nullptr ? 0 : static_cast<std::int64_t>(buffer->size_bytes());
    };
    std::int64_t step_bytes = 0;
    for (const auto& of_turn : contents.steps) {
      for (const auto& step : of_turn) {
        step_bytes += step->bytes();
      }
    }
    return {contents.weights.bytes(), descs.kv.bytes(), descs.states.bytes() + descs.rows.bytes(),
            size(contents.arena) + size(contents.scratch) + contents.tables.bytes() + step_bytes};
  }
  [[nodiscard]] std::string description() const override {
    const auto mebibytes = [](std::int64_t bytes) {
      return static_cast<double>(bytes) / (1 << 20);
    };
    const auto weights =
        format("{:.1f} MiB of weights on the device", mebibytes(memory().weight_bytes));
    const auto& states = memory_->cache_descs().states;
    return states.bytes() == 0 ? weights
                               : format("{}; {} slots of {:.1f} MiB for recurrent state", weights,
                                        states.n_slots, mebibytes(states.bytes_per_slot()));
  }

 private:
  std::unique_ptr<SessionMemory> memory_;
};

class GpuBackend final : public Backend {
 public:
  GpuBackend(std::unique_ptr<Device> device, DeviceOpener opener)
      : owner_(std::move(device), std::move(opener)) {}

  [[nodiscard]] std::string_view name() const override { return "gpu"; }
  [[nodiscard]] std::string description() const override {
    const Capabilities& card = owner_.capabilities();
    return format("{} ({}), {} compute units, {:.1f} GiB", card.name, card.architecture,
                  card.compute_units, static_cast<double>(card.memory_bytes) / (1 << 30));
  }
  [[nodiscard]] plan::Options plan_options() const override {
    return {.fuse = true, .merged_launches = max_merged_launches};
  }
  /// Each of many experts gets a tile of rows only from long steps.
  [[nodiscard]] std::int64_t prompt_rows() const override {
    constexpr std::uint32_t many_units = 32;
    return owner_.capabilities().compute_units >= many_units ? 2048 : 512;
  }
  [[nodiscard]] std::int64_t free_memory() const override {
    return static_cast<std::int64_t>(owner_.free_bytes());
  }
  [[nodiscard]] Result<void> check(const graph::WeightTable& weights) const override;

  Result<std::unique_ptr<Session>> open(const graph::WeightTable& weights,
                                        const graph::CacheDescs& caches) override {
    HEARTH_ASSIGN(auto memory, SessionMemory::create(owner_, weights, caches));
    return std::make_unique<GpuSession>(std::move(memory));
  }
  Result<std::unique_ptr<ReadStream>> read_stream() override {
    HEARTH_TRY(owner_.make_ready());
    return make_read_stream(owner_);
  }

 private:
  DeviceOwner owner_;
};

Result<void> GpuBackend::check(const graph::WeightTable& weights) const {
  std::uint64_t bytes = 0;
  for (const auto& weight : weights) {
    bytes += static_cast<std::uint64_t>(weight.n_bytes());
    if (weight.tensor.shape.rank() > 1) {
      HEARTH_TRY(kernel_for("product_", weight.tensor.dtype, format("tensor '{}'", weight.name)));
    }
  }
  const Capabilities& card = owner_.capabilities();
  if (bytes > card.memory_bytes / 10 * 9) {
    return fail(ErrorCode::out_of_memory,
                "{}: the weights of {} bytes and what works with them do not fit into {} bytes",
                card.name, bytes, card.memory_bytes);
  }
  return {};
}

}  // namespace
}  // namespace gpu

std::unique_ptr<Backend> make_gpu_backend(std::unique_ptr<gpu::Device> device) {
  return std::make_unique<gpu::GpuBackend>(std::move(device), []() {
    return fail(ErrorCode::internal, "this device is opened once only");
  });
}

Result<std::unique_ptr<Backend>> make_gpu_backend(gpu::DeviceOpener opener) {
  HEARTH_ASSIGN(auto device, opener());
  return std::make_unique<gpu::GpuBackend>(std::move(device), std::move(opener));
}

Result<std::unique_ptr<Backend>> make_cuda_backend(int ordinal) {
  return make_gpu_backend([ordinal] { return gpu::cuda::open_cuda_device(ordinal); });
}

Result<std::unique_ptr<Backend>> make_metal_backend() {
  return make_gpu_backend([] { return gpu::metal::open_metal_device(); });
}

}  // namespace hearth::backend
