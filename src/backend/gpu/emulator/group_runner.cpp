#include "backend/gpu/emulator/group_runner.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "backend/gpu/emulator/fault.h"
#include "backend/gpu/emulator/random_order.h"
#include "base/format.h"

namespace hearth::backend::gpu::emulator {
namespace {

/// What a fiber runs: the kernel, once for every threadgroup.
void run_lane() {
  Fiber::entered();
  Lane& me = *current_lane;
  for (;;) {
    const Dispatch& dispatch = me.simdgroup->runner->dispatch();
    {
      const HiddenFromRaceDetection hidden;
      me.is_early = dispatch.kernel.is_early;
      lane_is_early = me.is_early;
    }
    dispatch.kernel.run(dispatch.buffers.data(), dispatch.params.data(), me.position);
    const HiddenFromRaceDetection hidden;
    if (me.is_early) {
      fault("it ends without having called wait_for_kernel_before()", Site::current());
    }
    if (arrive(me, EventKind::end, Site::current())) {
      me.simdgroup->runner->leave_lane(me);
    } else {
      switch_lanes(me, *me.next);
    }
  }
}

Dim3 position_of(std::uint32_t index, Dim3 size) {
  return {index % size.x, index / size.x % size.y, index / size.x / size.y};
}

}  // namespace

Result<void> GroupRunner::run(const Dispatch& dispatch, Dim3 group) {
  const HiddenFromRaceDetection hidden;
  dispatch_ = &dispatch;
  n_simdgroups_ = dispatch.group_size.count() / simdgroup_lanes;
  const std::uint64_t number =
      group.x + dispatch.grid.x * (group.y + std::uint64_t{dispatch.grid.y} * group.z);
  std::uint64_t order_key = dispatch.seed == 0 ? 0 : scramble(dispatch.seed ^ scramble(number));
  prepare(group, order_key);

  Fiber this_thread;
  scheduler_ = &this_thread;
  std::vector<std::uint32_t> order(n_simdgroups_);
  std::iota(order.begin(), order.end(), 0u);
  bool is_done = false;
  while (!is_done && !fault_) {
    order_key = order_key == 0 ? 0 : scramble(order_key);
    put_in_random_order<std::uint32_t>(order, order_key);
    run_to_events(order);
    const auto event = common_event();
    is_done = event && event->kind == EventKind::end;
  }
  if (fault_) {
    simdgroups_.clear();  // the lanes stopped anywhere
    return Failure(*std::exchange(fault_, std::nullopt));
  }
  return {};
}

/// Lets every simdgroup run until all its lanes are at a barrier or at the end.
void GroupRunner::run_to_events(std::span<const std::uint32_t> order) {
  for (const std::uint32_t index : order) {
    Simdgroup& simdgroup = *simdgroups_[index];
    simdgroup.n_arrived = 0;
    current_lane = simdgroup.first;
    lane_is_early = simdgroup.first->is_early;
    Fiber::switch_between(*scheduler_, simdgroup.first->fiber);
    if (fault_) {
      return;
    }
  }
  ++n_barriers_;
}

void GroupRunner::leave_lane(Lane& lane) {
  Fiber::switch_between(lane.fiber, *scheduler_);
}

/// What all simdgroups have come to. If it is not the same, that is the fault.
std::optional<Event> GroupRunner::common_event() {
  const Event& first = simdgroups_.front()->event;
  for (std::size_t i = 1; i < n_simdgroups_ && !fault_; ++i) {
    if (const Event& other = simdgroups_[i]->event; other != first) {
      fault_ = report(simdgroups_[i]->lanes[0],
                      format("simdgroup {} has come to {}, while simdgroup 0 is at {}", i,
                             describe(other), describe(first)),
                      other.where);
    }
  }
  return fault_ ? std::nullopt : std::optional(first);
}

void GroupRunner::prepare(Dim3 group, std::uint64_t order_key) {
  if (has_thread_sanitizer) {
    // New stacks, slots and memory for every threadgroup: what the old ones saw would order this
    // threadgroup after the last, and hide races between them.
    simdgroups_.clear();
    shared_memory_.reset();
    barrier_objects_.reset();
  }
  if (!barrier_objects_) {
    barrier_objects_ = std::make_unique<std::array<std::byte, 2>>();
  }
  prepare_shared_memory();
  for (std::size_t i = 0; i < n_simdgroups_; ++i) {
    if (i == simdgroups_.size()) {
      simdgroups_.push_back(std::make_unique<Simdgroup>());
      for (Lane& lane : simdgroups_.back()->lanes) {
        lane.simdgroup = simdgroups_.back().get();
        lane.fiber.start(run_lane, static_cast<unsigned>(&lane - lane.simdgroup->lanes.data()));
      }
    }
    prepare_simdgroup(i, group, order_key == 0 ? 0 : scramble(order_key + i));
  }
}

void GroupRunner::prepare_simdgroup(std::size_t index, Dim3 group, std::uint64_t order_key) {
  Simdgroup& simdgroup = *simdgroups_[index];
  simdgroup.runner = this;
  std::array<Lane*, simdgroup_lanes> ring;
  for (std::uint32_t i = 0; i < simdgroup_lanes; ++i) {
    const auto thread = static_cast<std::uint32_t>(index) * simdgroup_lanes + i;
    Lane& lane = simdgroup.lanes[i];
    lane.n_shared_arrays = 0;
    lane.is_early = false;
    lane.position = {.group = group,
                     .thread = position_of(thread, dispatch_->group_size),
                     .grid_size = dispatch_->grid,
                     .group_size = dispatch_->group_size,
                     .lane = i,
                     .simdgroup = static_cast<std::uint32_t>(index)};
    ring[i] = &lane;
  }
  put_in_random_order<Lane*>(ring, order_key);
  for (std::size_t i = 0; i < ring.size(); ++i) {
    ring[i]->next = ring[(i + 1) % ring.size()];
  }
  simdgroup.first = ring.front();
}

void GroupRunner::prepare_shared_memory() {
  if (!shared_memory_) {
    shared_memory_ = std::make_unique<SharedMemory>();
    shared_bytes_ = shared_memory_bytes;
  }
  std::memset(shared_memory_->bytes.data(), 0xff, shared_bytes_);
  shared_bytes_ = 0;
  n_shared_arrays_ = 0;
}

const MemoryRange& GroupRunner::shared_array(Lane& lane, std::string_view name, std::uint64_t bytes,
                                             Site where) {
  const std::uint32_t index = lane.n_shared_arrays++;
  if (index == n_shared_arrays_) {
    constexpr std::uint64_t alignment = 32;  // what tiles need on CUDA
    if (index == shared_arrays_.size() || bytes > shared_memory_bytes - shared_bytes_) {
      fault(format("array '{}' of {} bytes does not fit: {} of {} bytes of shared memory are used, "
                   "in {} arrays of at most {}",
                   name, bytes, shared_bytes_, shared_memory_bytes, index, shared_arrays_.size()),
            where);
    }
    shared_arrays_[index] = {{shared_memory_->bytes.data() + shared_bytes_, bytes, name}, where};
    shared_bytes_ += (bytes + alignment - 1) / alignment * alignment;
    ++n_shared_arrays_;
  }
  const SharedArray& array = shared_arrays_[index];
  if (array.where.line() != where.line() || array.range.bytes != bytes) {
    fault(format("array '{}' is not reached by every thread: another one has '{}' in its place",
                 name, array.range.name),
          where);
  }
  return array.range;
}

}  // namespace hearth::backend::gpu::emulator
