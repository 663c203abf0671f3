#include "backend/gpu/emulator/lockstep.h"

#include "backend/gpu/emulator/fault.h"
#include "backend/gpu/emulator/group_runner.h"
#include "base/format.h"

namespace hearth::backend::gpu::emulator {

thread_local constinit Lane* current_lane = nullptr;
thread_local constinit bool lane_is_early = false;

namespace {

std::string divergence(const Lane& lane, const Event& event) {
  const Simdgroup& simdgroup = *lane.simdgroup;
  return format("lane {} of simdgroup {} has come to {}, while {} lanes wait at {}",
                lane.position.lane, lane.position.simdgroup, describe(event), simdgroup.n_arrived,
                describe(simdgroup.event));
}

}  // namespace

bool Event::operator==(const Event& other) const {
  return kind == other.kind && where.line() == other.where.line() &&
         where.column() == other.where.column();
}

bool arrive(Lane& lane, EventKind kind, Site where) {
  Simdgroup& simdgroup = *lane.simdgroup;
  release(simdgroup.runner->end_object());
  const Event event{kind, where};
  if (simdgroup.n_arrived == 0) {
    simdgroup.event = event;
  } else if (simdgroup.event != event) [[unlikely]] {
    fault(divergence(lane, event), where);
  }
  return ++simdgroup.n_arrived == simdgroup_lanes;
}

void wait_for_kernel_before() {
  const HiddenFromRaceDetection hidden;
  current_lane->is_early = false;
  lane_is_early = false;
}

void simdgroup_barrier(Site where) {
  const HiddenFromRaceDetection hidden;
  Lane& me = *current_lane;
  Simdgroup& simdgroup = *me.simdgroup;
  auto* object = &simdgroup.given[simdgroup.turn & 1];
  release(object);
  if (arrive(me, EventKind::simdgroup_barrier, where)) {
    simdgroup.n_arrived = 0;
    ++simdgroup.turn;
  } else {
    switch_lanes(me, *me.next);
  }
  acquire(object);
}

void group_barrier(Site where) {
  const HiddenFromRaceDetection hidden;
  Lane& me = *current_lane;
  GroupRunner& runner = *me.simdgroup->runner;
  std::byte* object = runner.barrier_object();
  release(object);
  if (arrive(me, EventKind::group_barrier, where)) {
    runner.leave_lane(me);
  } else {
    switch_lanes(me, *me.next);
  }
  acquire(object);
}

const MemoryRange& shared_array(std::string_view name, std::uint64_t element_bytes, std::uint32_t n,
                                Site where) {
  const HiddenFromRaceDetection hidden;
  Lane& me = *current_lane;
  return me.simdgroup->runner->shared_array(me, name, element_bytes * n, where);
}

}  // namespace hearth::backend::gpu::emulator
