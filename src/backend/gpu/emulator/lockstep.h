#pragma once
/// What the lanes of an emulated kernel call: barriers, collectives, shared arrays.
///
/// Every GPU thread is a fiber. The 32 lanes of a simdgroup form a ring, and the one that runs goes
/// on until its next **event** (a collective, a barrier, the end of the kernel). It arrives there
/// and switches straight to the next lane of the ring; the last of the 32 to arrive completes the
/// event for all and goes on. So a collective costs 31 switches and needs no scheduler. A lane that
/// comes to another event than the one under way has diverged: the fault is found at once.

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "backend/gpu/emulator/checked_pointer.h"
#include "backend/gpu/emulator/fiber.h"
#include "backend/gpu/host/kernel_info.h"

namespace hearth::backend::gpu::emulator {

/// Where a GPU thread is.
struct Position {
  Dim3 group{0, 0, 0};
  Dim3 thread{0, 0, 0};
  Dim3 grid_size;
  Dim3 group_size;
  std::uint32_t lane = 0;
  std::uint32_t simdgroup = 0;
};

enum class EventKind : std::uint8_t { collective, simdgroup_barrier, group_barrier, end };

struct Event {
  EventKind kind{};
  Site where;

  bool operator==(const Event& other) const;
};

struct Simdgroup;
class GroupRunner;

/// One GPU thread.
struct Lane {
  Fiber fiber;
  Position position;
  Simdgroup* simdgroup = nullptr;
  Lane* next = nullptr;               // in the ring
  std::uint32_t n_shared_arrays = 0;  // that this lane has declared so far
  bool is_early = false;              // it has not waited for the kernel before yet
};

struct Simdgroup {
  std::array<Lane, simdgroup_lanes> lanes;
  Lane* first = nullptr;  // of the ring
  GroupRunner* runner = nullptr;

  Event event;                  // the one under way, or the last
  std::uint32_t n_arrived = 0;  // lanes that are there
  // Collectives take turns between two sets of slots, since the lane that completes one is the
  // first to arrive at the next.
  std::uint32_t turn = 0;
  std::array<std::array<std::uint64_t, simdgroup_lanes>, 2> given{};
  std::array<std::array<std::uint64_t, simdgroup_lanes>, 2> taken{};
};

/// The lane that runs on this thread.
extern thread_local constinit Lane* current_lane;

/// Ends the current lane, and with it the dispatch, whose error says what is wrong and where. The
/// caller's accesses are hidden (emulator/sanitizers.h).
[[noreturn]] void fault(std::string what, Site where);

/// The same for what the dialect checks.
[[noreturn]] void fault_no_such_lane(std::uint32_t lane, Site where);
[[noreturn]] void fault_tile_stride(std::uint32_t stride, Site where);

/// True for the last of the 32 lanes at this event. A lane at another event is a fault.
bool arrive(Lane& lane, EventKind kind, Site where);

inline void switch_lanes(Lane& from, Lane& to) {
  current_lane = &to;
  lane_is_early = to.is_early;
  Fiber::switch_between(from.fiber, to.fiber);
}

/// Every lane gives a value; `combine(given, taken)`, both [32], runs once when all are there, and
/// each lane returns its element of `taken`.
template <class T, class Combine>
T collective(T value, Site where, Combine combine) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t) &&  // NOLINT(bugprone-sizeof-expression)
                std::is_trivially_copyable_v<T>);
  const HiddenFromRaceDetection hidden;
  Lane& me = *current_lane;
  Simdgroup& simdgroup = *me.simdgroup;
  const std::uint32_t turn = simdgroup.turn & 1;
  void* slots = simdgroup.given[turn].data();
  auto* given = static_cast<T*>(slots);
  auto* taken = static_cast<T*>(static_cast<void*>(simdgroup.taken[turn].data()));
  given[me.position.lane] = value;
  release(slots);
  if (arrive(me, EventKind::collective, where)) {
    acquire(slots);
    combine(given, taken);
    release(slots);
    simdgroup.n_arrived = 0;
    ++simdgroup.turn;
  } else {
    switch_lanes(me, *me.next);
  }
  acquire(slots);
  return taken[me.position.lane];
}

/// From here on the lane sees what the kernels before it wrote.
void wait_for_kernel_before();

/// Waits for the other lanes of the simdgroup, or the other threads of the threadgroup.
void simdgroup_barrier(Site where);
void group_barrier(Site where);

/// The next array of n elements in the threadgroup's shared memory: the same for each of its
/// threads, which declare all arrays in the same order. 32-byte aligned, filled with bytes 0xff
/// (NaN in every float format) before a threadgroup starts.
const MemoryRange& shared_array(std::string_view name, std::uint64_t element_bytes, std::uint32_t n,
                                Site where);

}  // namespace hearth::backend::gpu::emulator
