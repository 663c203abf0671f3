#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/gpu/emulator/emulated_kernel.h"
#include "backend/gpu/emulator/lockstep.h"
#include "base/result.h"

namespace hearth::backend::gpu::emulator {

/// One launch of a kernel, as the lanes see it.
struct Dispatch {
  const EmulatedKernel& kernel;
  std::span<const MemoryRange> buffers;
  std::span<const std::byte> params;
  Dim3 grid;        // threadgroups
  Dim3 group_size;  // threads
  std::uint64_t seed = 0;
};

/// Runs threadgroups, one after the other, on the thread that calls. Stacks and shared memory are
/// kept from one to the next. One thread at a time.
class GroupRunner {
 public:
  GroupRunner() = default;
  GroupRunner(const GroupRunner&) = delete;
  GroupRunner& operator=(const GroupRunner&) = delete;

  /// Runs one threadgroup of the dispatch to its end. The seed permutes lanes and simdgroups; 0 is
  /// the natural order. Errors: internal, for the first fault.
  Result<void> run(const Dispatch& dispatch, Dim3 group);

  // For the lanes:
  [[nodiscard]] const Dispatch& dispatch() const { return *dispatch_; }
  /// Whoever waits for the dispatch acquires this object, so what lanes did is before that.
  [[nodiscard]] void* end_object() const { return const_cast<Dispatch*>(dispatch_); }
  void set_fault(Error error) { fault_ = std::move(error); }
  void leave_lane(Lane& lane);
  /// Objects that stand for barriers to the thread sanitizer: one per generation, so that a lane
  /// which leaves late does not see what faster lanes did after the barrier.
  [[nodiscard]] std::byte* barrier_object() { return &(*barrier_objects_)[n_barriers_ % 2]; }
  const MemoryRange& shared_array(Lane& lane, std::string_view name, std::uint64_t bytes,
                                  Site where);

 private:
  struct SharedArray {
    MemoryRange range;
    Site where;
  };

  void prepare(Dim3 group, std::uint64_t order_key);
  void prepare_simdgroup(std::size_t index, Dim3 group, std::uint64_t order_key);
  void prepare_shared_memory();
  void run_to_events(std::span<const std::uint32_t> order);
  [[nodiscard]] std::optional<Event> common_event();

  const Dispatch* dispatch_ = nullptr;
  std::vector<std::unique_ptr<Simdgroup>> simdgroups_;
  std::size_t n_simdgroups_ = 0;  // of the threadgroup that runs
  Fiber* scheduler_ = nullptr;
  std::optional<Error> fault_;
  std::uint64_t n_barriers_ = 0;
  std::unique_ptr<std::array<std::byte, 2>> barrier_objects_;

  struct SharedMemory {
    alignas(128) std::array<std::byte, shared_memory_bytes> bytes;
  };
  std::unique_ptr<SharedMemory> shared_memory_;
  std::array<SharedArray, 16> shared_arrays_{};
  std::uint32_t n_shared_arrays_ = 0;
  std::uint64_t shared_bytes_ = 0;  // used so far
};

}  // namespace hearth::backend::gpu::emulator
