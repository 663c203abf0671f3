#include "backend/gpu/cuda/cuda_device.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend/gpu/cuda/cuda_commands.h"
#include "backend/gpu/cuda/driver.h"
#include "backend/gpu/cuda/fatbin.h"
#include "base/assert.h"
#include "base/fail.h"

namespace hearth::backend::gpu::cuda {
namespace {

class CudaBuffer final : public Buffer {
 public:
  CudaBuffer(std::shared_ptr<Driver> driver, Address address, std::uint64_t bytes,
             std::string_view label)
      : driver_(std::move(driver)), addresses_{address, address + bytes}, label_(label) {
    driver_->allocated_bytes += bytes;
  }
  ~CudaBuffer() override {
    driver_->enter();
    driver_->api().free(addresses_.begin);  // waits for work that uses it
    driver_->allocated_bytes -= size_bytes();
  }

  [[nodiscard]] std::string_view label() const override { return label_; }
  [[nodiscard]] AddressRange addresses() const override { return addresses_; }
  [[nodiscard]] std::span<std::byte> host() override { return {}; }

 private:
  std::shared_ptr<Driver> driver_;
  AddressRange addresses_;
  std::string label_;
};

/// Memory of the host that the card reads and writes; both see it at the same address.
class HostBuffer final : public Buffer {
 public:
  HostBuffer(std::shared_ptr<Driver> driver, std::span<std::byte> memory, std::string_view label)
      : driver_(std::move(driver)), memory_(memory), label_(label) {}
  ~HostBuffer() override {
    driver_->enter();
    driver_->api().free_host(memory_.data());
  }

  [[nodiscard]] std::string_view label() const override { return label_; }
  [[nodiscard]] AddressRange addresses() const override {
    const auto begin = reinterpret_cast<Address>(memory_.data());
    return {begin, begin + memory_.size()};
  }
  [[nodiscard]] std::span<std::byte> host() override { return memory_; }

 private:
  std::shared_ptr<Driver> driver_;
  std::span<std::byte> memory_;
  std::string label_;
};

class CudaDevice final : public Device {
 public:
  CudaDevice(std::shared_ptr<Driver> driver, Capabilities capabilities)
      : driver_(std::move(driver)), capabilities_(std::move(capabilities)) {}
  ~CudaDevice() override {
    driver_->enter();
    driver_->api().synchronize(driver_->stream());
    for (const auto& [ticket, event] : pending_) {
      driver_->api().destroy_event(event);
    }
  }
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  [[nodiscard]] const Capabilities& capabilities() const override { return capabilities_; }
  [[nodiscard]] Counters counters() const override {
    Counters counters = counters_;
    counters.allocated_bytes = driver_->allocated_bytes;
    return counters;
  }
  [[nodiscard]] std::uint64_t free_bytes() const override { return memory_info().first; }
  [[nodiscard]] bool is_lost() const override { return is_lost_; }

  Result<std::shared_ptr<Buffer>> allocate(std::uint64_t bytes, std::string_view label) override;
  Result<std::shared_ptr<Buffer>> allocate_host(std::uint64_t bytes,
                                                std::string_view label) override;
  Result<std::shared_ptr<Buffer>> wrap(std::span<std::byte> memory,
                                       std::string_view label) override;
  Result<void> compile(KernelId kernel) override;
  Result<std::unique_ptr<PreparedCommands>> prepare(const CommandList& list) override;
  Result<Ticket> submit(PreparedCommands& commands) override;
  Result<bool> wait(Ticket ticket, std::chrono::nanoseconds timeout) override;
  Result<void> copy(const BufferPart& to, const BufferPart& from) override;
  Result<void> upload(const BufferPart& to, std::span<const std::byte> from) override;
  Result<void> download(std::span<std::byte> to, const BufferPart& from) override;

 private:
  Result<void> enter() const;
  /// Bytes that are free, and in all.
  [[nodiscard]] std::pair<std::size_t, std::size_t> memory_info() const;
  Result<Function> function_of(KernelId kernel);
  /// An error of work on the card poisons the context: the device is lost.
  Result<void> check_work(Status status, std::string_view tried);
  void forget_until(std::uint64_t ticket);

  std::shared_ptr<Driver> driver_;
  Capabilities capabilities_;
  Counters counters_;
  std::map<KernelId, Function> functions_;
  std::deque<std::pair<std::uint64_t, Event>> pending_;  // submissions not yet known to be done
  bool is_lost_ = false;
};

std::pair<std::size_t, std::size_t> CudaDevice::memory_info() const {
  driver_->enter();
  std::size_t free = 0;
  std::size_t total = 0;
  driver_->api().memory_info(&free, &total);
  return {free, total};
}

Result<std::shared_ptr<Buffer>> CudaDevice::allocate(std::uint64_t bytes, std::string_view label) {
  HEARTH_TRY(enter());
  Address address = 0;
  const Status status = driver_->api().allocate(&address, bytes);
  if (status == Status::out_of_memory) {
    const auto [free_bytes, total_bytes] = memory_info();
    return fail(ErrorCode::out_of_memory,
                "cuda: no memory for buffer '{}' of {} bytes: {} of {} bytes are free, {} are ours",
                label, bytes, free_bytes, total_bytes, driver_->allocated_bytes);
  }
  HEARTH_TRY(driver_->check(status, "allocating memory"));
  return std::make_shared<CudaBuffer>(driver_, address, bytes, label);
}

Result<std::shared_ptr<Buffer>> CudaDevice::allocate_host(std::uint64_t bytes,
                                                          std::string_view label) {
  HEARTH_TRY(enter());
  void* memory = nullptr;
  const Status status = driver_->api().allocate_host(&memory, bytes, /*flags=*/0);
  if (status == Status::out_of_memory) {
    return fail(ErrorCode::out_of_memory, "cuda: no memory of the host for buffer '{}' of {} bytes",
                label, bytes);
  }
  HEARTH_TRY(driver_->check(status, "allocating memory of the host"));
  return std::make_shared<HostBuffer>(
      driver_, std::span(static_cast<std::byte*>(memory), static_cast<std::size_t>(bytes)), label);
}

Result<std::shared_ptr<Buffer>> CudaDevice::wrap(std::span<std::byte> memory,
                                                 std::string_view label) {
  return fail(ErrorCode::unsupported,
              "cuda: buffer '{}' of {} bytes cannot be the host's memory: the card has its own",
              label, memory.size());
}

Result<Function> CudaDevice::function_of(KernelId kernel) {
  if (const auto found = functions_.find(kernel); found != functions_.end()) {
    return found->second;
  }
  Function function = nullptr;
  const std::string name(kernel_info(kernel).name);
  const Status status = driver_->api().function(&function, driver_->module(), name.c_str());
  HEARTH_TRY(driver_->check(status, format("loading kernel '{}'", name)));
  functions_.emplace(kernel, function);
  return function;
}

Result<void> CudaDevice::compile(KernelId kernel) {
  HEARTH_TRY(enter());
  HEARTH_TRY(function_of(kernel));
  return {};
}

Result<std::unique_ptr<PreparedCommands>> CudaDevice::prepare(const CommandList& list) {
  HEARTH_TRY(enter());
  HEARTH_ASSIGN(const CommandCounts counts, check_commands(list));
  std::vector<Function> functions;
  for (const Command& command : list.commands()) {
    if (const auto* dispatch = std::get_if<DispatchCommand>(&command)) {
      HEARTH_ASSIGN(const Function function, function_of(dispatch->kernel));
      functions.push_back(function);
    }
  }
  HEARTH_ASSIGN(auto commands, CudaCommands::record(driver_, list, counts, functions));
  return std::unique_ptr<PreparedCommands>(std::move(commands));
}

Result<Ticket> CudaDevice::submit(PreparedCommands& commands) {
  HEARTH_TRY(enter());
  const auto* prepared = dynamic_cast<const CudaCommands*>(&commands);
  HEARTH_ASSERT(prepared != nullptr);  // of this device
  HEARTH_TRY(check_work(driver_->api().launch_graph(prepared->graph(), driver_->stream()),
                        "submitting work"));
  constexpr unsigned without_timing = 2;
  Event event = nullptr;
  HEARTH_TRY(check_work(driver_->api().create_event(&event, without_timing), "making an event"));
  ++counters_.submissions;
  pending_.emplace_back(static_cast<std::uint64_t>(counters_.submissions), event);
  HEARTH_TRY(check_work(driver_->api().record_event(event, driver_->stream()), "submitting work"));
  counters_.dispatches += prepared->counts().dispatches;
  counters_.barriers += prepared->counts().barriers;
  return Ticket{pending_.back().first};
}

Result<bool> CudaDevice::wait(Ticket ticket, std::chrono::nanoseconds timeout) {
  HEARTH_TRY(enter());
  const auto number = static_cast<std::uint64_t>(ticket);
  const auto found =
      std::ranges::find(pending_, number, [](const auto& each) { return each.first; });
  if (found == pending_.end()) {
    return true;
  }
  const auto start = std::chrono::steady_clock::now();
  Status status = driver_->api().query_event(found->second);
  while (status == Status::not_ready) {
    if (std::chrono::steady_clock::now() - start >= timeout) {
      return false;
    }
    // A step takes a millisecond: asking again and again costs less than being woken up.
    std::this_thread::yield();
    status = driver_->api().query_event(found->second);
  }
  HEARTH_TRY(check_work(status, "running work"));
  forget_until(number);
  return true;
}

void CudaDevice::forget_until(std::uint64_t ticket) {
  while (!pending_.empty() && pending_.front().first <= ticket) {
    driver_->api().destroy_event(pending_.front().second);
    pending_.pop_front();
  }
}

Result<void> CudaDevice::copy(const BufferPart& to, const BufferPart& from) {
  HEARTH_TRY(enter());
  HEARTH_TRY(check_copy(to, from));
  return check_work(driver_->api().copy(to.addresses().begin, from.addresses().begin, to.bytes,
                                        driver_->stream()),
                    "copying on the card");
}

Result<void> CudaDevice::upload(const BufferPart& to, std::span<const std::byte> from) {
  HEARTH_TRY(enter());
  HEARTH_TRY(check_transfer("upload", to, from.size()));
  HEARTH_TRY(check_work(
      driver_->api().upload(to.addresses().begin, from.data(), from.size(), driver_->stream()),
      "uploading"));
  counters_.uploaded_bytes += from.size();
  return check_work(driver_->api().synchronize(driver_->stream()), "uploading");
}

Result<void> CudaDevice::download(std::span<std::byte> to, const BufferPart& from) {
  HEARTH_TRY(enter());
  HEARTH_TRY(check_transfer("download", from, to.size()));
  HEARTH_TRY(check_work(
      driver_->api().download(to.data(), from.addresses().begin, to.size(), driver_->stream()),
      "downloading"));
  counters_.downloaded_bytes += to.size();
  return check_work(driver_->api().synchronize(driver_->stream()), "downloading");
}

Result<void> CudaDevice::enter() const {
  if (is_lost_) {
    return fail(ErrorCode::internal, "cuda: {} is lost, open it anew", capabilities_.name);
  }
  driver_->enter();
  return {};
}

Result<void> CudaDevice::check_work(Status status, std::string_view tried) {
  is_lost_ = is_lost_ || status != Status::success;
  return driver_->check(status, tried);
}

Result<Capabilities> capabilities_of(const Driver& driver) {
  const DriverApi& api = driver.api();
  std::array<char, 256> name{};
  HEARTH_TRY(
      driver.check(api.device_name(name.data(), static_cast<int>(name.size()) - 1, driver.device()),
                   "reading the card's name"));
  int major = 0;
  int minor = 0;
  int n_units = 0;
  std::size_t bytes = 0;
  for (const auto& [attribute, value] : {std::pair(Attribute::compute_capability_major, &major),
                                         {Attribute::compute_capability_minor, &minor},
                                         {Attribute::multiprocessors, &n_units}}) {
    HEARTH_TRY(driver.check(api.device_attribute(value, attribute, driver.device()),
                            "reading the card's properties"));
  }
  HEARTH_TRY(driver.check(api.total_memory(&bytes, driver.device()), "reading the card's memory"));
  return Capabilities{.name = name.data(),
                      .architecture = format("sm_{}{}", major, minor),
                      .memory_bytes = bytes,
                      .compute_units = static_cast<std::uint32_t>(n_units),
                      .has_integer_tiles = true};
}

}  // namespace

Result<std::unique_ptr<Device>> open_cuda_device(int ordinal) {
  const auto fatbin = kernel_fatbin();
  if (fatbin.empty()) {
    return fail(ErrorCode::unsupported, "this program was built without CUDA kernels");
  }
  HEARTH_ASSIGN(const DriverApi api, load_driver_api());
  return open_cuda_device(api, fatbin, ordinal);
}

Result<std::unique_ptr<Device>> open_cuda_device(const DriverApi& api,
                                                 std::span<const std::byte> fatbin, int ordinal) {
  HEARTH_ASSIGN(auto driver, Driver::open(api, fatbin.data(), ordinal));
  HEARTH_ASSIGN(auto capabilities, capabilities_of(*driver));
  return std::make_unique<CudaDevice>(std::move(driver), std::move(capabilities));
}

}  // namespace hearth::backend::gpu::cuda
