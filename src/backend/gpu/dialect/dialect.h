#pragma once
/// The language in which GPU kernels are written once for every target. A kernel file includes this
/// header and nothing else but headers of parameters and of device functions; it is compiled as
/// CUDA, as C++ for the emulator, and becomes part of the Metal library's source (which has no
/// includes: cmake/MetalSource.cmake strings the files together). docs/howto/add-gpu-kernel.md has
/// the rules.
///
/// Entry       KERNEL(name, max_threads, Params, BUFFER(0, const f32, x), ...) { ... }
///             its parameters are `p`; threadgroups are multiples of 32 threads. EARLY_KERNEL may
///             run before the kernel in front of it has ended, until every thread, also one that
///             has nothing to do, calls wait_for_kernel_before(): up to there it reads only what no
///             kernel of the step writes: weights, counts, positions, tables, what caches have had
///             since earlier steps. A WIDE_EARLY_KERNEL's threads may have more registers, and
///             fewer of them run at once
/// Numbers     u8 u16 u32 u64, i8 i16 i32 i64, f32; f16 and bf16 are storage: to_f32(), to_f16()
/// Pointers    DEVICE(T) into buffers, SHARED(T) into the threadgroup's memory, THREAD(T) and
///             THREAD_REF(T) to a thread's own variables; const belongs to T; no unary *;
///             PARAMS(T) for functions that take the kernel's parameters, or a member of them
/// Functions   DEVICE_FN, which takes pointers and positions as arguments
/// Position    k_group, k_thread, k_grid_size, k_group_size (each .x .y .z), k_lane, k_simdgroup;
///             in kernels alone
/// Memory      SHARED_ARRAY(T, name, n) at the top of a kernel; 32 KiB in all, undefined at first
/// Vectors     f32x4 and u32x4 (.x .y .z .w), load4(), store4() at multiples of 16 bytes; u32x2
///             and load2() at multiples of 8; words(), halfwords() and floats() of aligned bytes;
///             bytes_of() cells in a buffer; load4_once() of a buffer's words that will hardly be
///             read again
/// Prefetch    prefetch(address): the bytes around it will be read soon; by devices that can
/// Barriers    group_barrier() orders shared memory, group_barrier_device() device memory too,
/// within
///             the threadgroup; simdgroup_barrier()
/// Collectives simd_sum_f32/u32, simd_max_f32/u32, shuffle(), shuffle_xor(): by all 32 lanes
/// Arithmetic  fma_f32, sqrt_f32, exp_f32 ... (dialect/math.h): no contraction, no fast math
/// Bytes       dot4_i8(a, b, sum): sum + the products of four signed bytes; pick_bytes(low, high,
///             places): byte i is the one of eight that the low three bits of nibble i name
/// Tiles       dialect/tiles.h; of bytes, add_tile_product_u8/i8(sums, a, b_low, b_high, lane):
/// sums
///             [16, 8] += a [16, 32] of unsigned or signed bytes times b [32, 8] of signed ones.
///             Lane 4 g + q has of a the bytes 4q ... of rows g (.x) and g + 8 (.y), and 16 + 4q
///             ... (.z, .w); of b's column g the bytes 4q ... and 16 + 4q ...; of the sums columns
///             2q and 2q + 1 of rows g and g + 8. tile_product_u8/i8: from zero on.
///             add_half_tile_product_u8(sums, a_row, a_row8, b, lane): of a [16, 16] and b [16, 8]
///             the words .x, .y and b_low
/// Loops       UNROLL in front of a loop with a constant count; KEEP_LOOP in front of one that is
///             to stay as short as it is, since code that runs once waits for its instructions

#ifdef __CUDACC__
#include "backend/gpu/dialect/cuda.h"
#else
#include "backend/gpu/dialect/emulator.h"
#endif

#include "backend/gpu/dialect/math.h"
#include "backend/gpu/dialect/vectors.h"
