#include "backend/gpu/emulator/emulator.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "backend/gpu/emulator/random_order.h"
#include "backend/gpu/host/dispatch_rules.h"
#include "base/assert.h"

namespace hearth::backend::gpu::emulator {
namespace {

std::vector<AddressRange> addresses_of(std::span<const MemoryRange> buffers) {
  std::vector<AddressRange> addresses;
  for (const MemoryRange& buffer : buffers) {
    const auto begin = reinterpret_cast<std::uintptr_t>(buffer.begin);
    addresses.push_back({begin, begin + buffer.bytes});
  }
  return addresses;
}

Dim3 group_at(std::uint64_t number, Dim3 grid) {
  return {static_cast<std::uint32_t>(number % grid.x),
          static_cast<std::uint32_t>(number / grid.x % grid.y),
          static_cast<std::uint32_t>(number / grid.x / grid.y)};
}

}  // namespace

/// Persistent threads: new ones per dispatch would need new stacks for all their fibers.
class Emulator::Workers {
 public:
  explicit Workers(int n_workers) : runners_(static_cast<std::size_t>(n_workers)) {
    for (std::size_t i = 1; i < runners_.size(); ++i) {
      threads_.emplace_back([this, i] { wait_for_work(i); });
    }
  }
  ~Workers() {
    {
      const std::lock_guard lock(mutex_);
      is_stopping_ = true;
    }
    changed_.notify_all();
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  Result<void> run(const Dispatch& dispatch) {
    order_.emplace(dispatch.grid.count(), dispatch.seed);
    next_ = 0;
    error_.reset();
    {
      const std::lock_guard lock(mutex_);
      dispatch_ = &dispatch;
      ++job_;
      n_busy_ = threads_.size();
    }
    changed_.notify_all();
    work(runners_[0]);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return n_busy_ == 0; });
    acquire(const_cast<Dispatch*>(&dispatch));  // released by every lane at its end
    return error_ ? Result<void>(Failure(*error_)) : Result<void>();
  }

 private:
  void wait_for_work(std::size_t index) {
    std::uint64_t done = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return is_stopping_ || job_ != done; });
      if (is_stopping_) {
        return;
      }
      done = job_;
      lock.unlock();
      work(runners_[index]);
      lock.lock();
      if (--n_busy_ == 0) {
        changed_.notify_all();
      }
    }
  }

  void work(GroupRunner& runner) {
    const std::uint64_t n_groups = dispatch_->grid.count();
    for (std::uint64_t i = next_++; i < n_groups; i = next_++) {
      if (auto result = runner.run(*dispatch_, group_at(order_->at(i), dispatch_->grid)); !result) {
        next_ = n_groups;
        const std::lock_guard lock(mutex_);
        error_ = std::move(result).error();
      }
    }
  }

  std::vector<GroupRunner> runners_;
  const Dispatch* dispatch_ = nullptr;
  std::optional<GroupOrder> order_;
  std::atomic<std::uint64_t> next_{0};  // threadgroups taken so far
  std::mutex mutex_;                    // guards what follows
  std::condition_variable changed_;
  std::optional<Error> error_;
  std::uint64_t job_ = 0;  // counts dispatches
  std::size_t n_busy_ = 0;
  bool is_stopping_ = false;
  std::vector<std::jthread> threads_;  // last: they end before what they use
};

Emulator::Emulator(const EmulatorOptions& options)
    : seed_(options.seed), workers_(std::make_unique<Workers>(options.n_workers)) {
  HEARTH_ASSERT(options.n_workers >= 1);
}

Emulator::~Emulator() = default;

Result<void> Emulator::run(const EmulatedKernel& kernel, std::span<const MemoryRange> buffers,
                           std::span<const std::byte> params, Dim3 grid, Dim3 group_size) {
  HEARTH_TRY(check_dispatch(kernel.info, addresses_of(buffers), params.size(), grid, group_size));
  ++n_dispatches_;
  const std::uint64_t seed = seed_ == 0 ? 0 : scramble(seed_ + n_dispatches_);
  return workers_->run({.kernel = kernel,
                        .buffers = buffers,
                        .params = params,
                        .grid = grid,
                        .group_size = group_size,
                        .seed = seed});
}

}  // namespace hearth::backend::gpu::emulator
