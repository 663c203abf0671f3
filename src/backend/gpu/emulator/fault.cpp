#include "backend/gpu/emulator/fault.h"

#include "backend/gpu/emulator/group_runner.h"
#include "base/assert.h"
#include "base/format.h"

namespace hearth::backend::gpu::emulator {
namespace {

std::string place(Site where) {
  const std::string_view path = where.file_name();
  return format("{}:{}", path.substr(path.find_last_of('/') + 1), where.line());
}

std::string triple(Dim3 index) {
  return format("({}, {}, {})", index.x, index.y, index.z);
}

}  // namespace

std::string describe(const Event& event) {
  switch (event.kind) {
    case EventKind::collective:
      return format("a simdgroup operation ({})", place(event.where));
    case EventKind::simdgroup_barrier:
      return format("a simdgroup barrier ({})", place(event.where));
    case EventKind::group_barrier:
      return format("a threadgroup barrier ({})", place(event.where));
    case EventKind::end:
      break;
  }
  return "the end of the kernel";
}

Error report(const Lane& lane, std::string_view what, Site where) {
  return {ErrorCode::internal,
          format("kernel '{}': {} (threadgroup {}, thread {}, {})",
                 lane.simdgroup->runner->dispatch().kernel.info.name, what,
                 triple(lane.position.group), triple(lane.position.thread), place(where))};
}

void fault(std::string what, Site where) {
  Lane& lane = *current_lane;
  lane.simdgroup->runner->set_fault(report(lane, what, where));
  release(lane.simdgroup->runner->end_object());
  std::string().swap(what);  // this stack is left for good: nothing on it may own memory
  lane.simdgroup->runner->leave_lane(lane);
  assertion_failed("a lane is left after a fault", __FILE__, __LINE__);
}

void fault_no_such_lane(std::uint32_t lane, Site where) {
  const HiddenFromRaceDetection hidden;
  fault(format("takes the value of lane {}, expected at most {}", lane, simdgroup_lanes - 1),
        where);
}

void fault_outside(const MemoryRange& range, std::int64_t offset, std::size_t bytes, Site where) {
  const HiddenFromRaceDetection hidden;
  fault(format("accesses {} bytes at byte {} of '{}', which has {} bytes", bytes, offset,
               range.name, range.bytes),
        where);
}

void fault_misaligned(const MemoryRange& range, std::int64_t offset, std::size_t bytes,
                      Site where) {
  const HiddenFromRaceDetection hidden;
  fault(format("accesses {} bytes at byte {} of '{}', which is not aligned to them", bytes, offset,
               range.name),
        where);
}

void fault_tile_stride(std::uint32_t stride, Site where) {
  const HiddenFromRaceDetection hidden;
  fault(format("accesses a tile with rows {} elements apart, expected a multiple of 8", stride),
        where);
}

}  // namespace hearth::backend::gpu::emulator
