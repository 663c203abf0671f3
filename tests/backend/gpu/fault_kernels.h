#pragma once
/// Kernels for the tests of the emulator: right ones that use every part of the dialect, and one
/// with a planted fault for every check.

#include "backend/gpu/dialect/scalars.h"
#include "backend/gpu/emulator/emulated_kernel.h"

namespace hearth::backend::gpu {

struct TestParams {
  u32 n;
};

// Without fault.
extern const emulator::EmulatedKernel group_sum_emulated;     // y[group] = sum of x, by all threads
extern const emulator::EmulatedKernel positions_emulated;     // y[thread] = where it is
extern const emulator::EmulatedKernel collectives_emulated;   // one of each, per lane
extern const emulator::EmulatedKernel tile_product_emulated;  // 16 x 16 matrices

extern const emulator::EmulatedKernel early_emulated;  // y = x before waiting, then after

// With a planted fault.
extern const emulator::EmulatedKernel fault_does_not_wait_emulated;
extern const emulator::EmulatedKernel fault_reads_outside_emulated;
extern const emulator::EmulatedKernel fault_reads_before_emulated;
extern const emulator::EmulatedKernel fault_shared_outside_emulated;
extern const emulator::EmulatedKernel fault_misaligned_emulated;
extern const emulator::EmulatedKernel fault_unwritten_shared_emulated;
extern const emulator::EmulatedKernel fault_shared_too_large_emulated;
extern const emulator::EmulatedKernel fault_shared_array_of_some_emulated;
extern const emulator::EmulatedKernel fault_barrier_of_some_lanes_emulated;
extern const emulator::EmulatedKernel fault_barrier_of_some_simdgroups_emulated;
extern const emulator::EmulatedKernel fault_two_barriers_emulated;
extern const emulator::EmulatedKernel fault_early_return_emulated;
extern const emulator::EmulatedKernel fault_two_collectives_emulated;
extern const emulator::EmulatedKernel fault_lane_beyond_31_emulated;
extern const emulator::EmulatedKernel fault_tile_stride_emulated;

// Races: wrong under some orders only, and what the thread sanitizer has to find.
extern const emulator::EmulatedKernel race_missing_barrier_emulated;
extern const emulator::EmulatedKernel race_write_after_read_emulated;
extern const emulator::EmulatedKernel race_between_groups_emulated;

}  // namespace hearth::backend::gpu
