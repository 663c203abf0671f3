#pragma once
/// The dialect as CUDA C++, for compute capability 8.0 and up.

#include <cuda_fp16.h>

#include "backend/gpu/dialect/cuda_entry.h"
#include "backend/gpu/dialect/scalars.h"

// clang-format off
#define DEVICE_FN     static __device__ __forceinline__
#define UNROLL        _Pragma("unroll")
#define KEEP_LOOP     _Pragma("unroll 1")
#define DEVICE(T)     T*
#define SHARED(T)     T*
#define THREAD(T)     T*
#define THREAD_REF(T) T&
#define PARAMS(T)     const T&

// A buffer is a declaration and a name, which KERNEL takes apart. Not __restrict__: the compiler
// would take what a pointer to const says for constant while the kernel is resident, and read it
// before the kernel that writes it has ended.
#define BUFFER(index, T, name) (T* name, name)
#define KERNEL(name, max_threads, Params, ...) \
  KERNEL_THAT(LAUNCH_NEXT_AND_WAIT, THREADS_AT_ONCE, name, max_threads, Params, __VA_ARGS__)
#define EARLY_KERNEL(name, max_threads, Params, ...) \
  KERNEL_THAT(LAUNCH_NEXT, THREADS_AT_ONCE, name, max_threads, Params, __VA_ARGS__)
#define WIDE_EARLY_KERNEL(name, max_threads, Params, ...) \
  KERNEL_THAT(LAUNCH_NEXT, WIDE_THREADS_AT_ONCE, name, max_threads, Params, __VA_ARGS__)
#define KERNEL_THAT(begins, at_once, name, max_threads, Params, ...)                              \
  static __device__ __forceinline__ void name##_body(FOR_EACH(DECLARATION_OF, __VA_ARGS__),       \
                                                     const Params& p);                            \
  extern "C" __global__ void __launch_bounds__(max_threads, at_once / (max_threads))              \
  name(FOR_EACH(DECLARATION_OF, __VA_ARGS__), const __grid_constant__ Params p) {                 \
    begins();                                                                                     \
    name##_body(FOR_EACH(NAME_OF, __VA_ARGS__), p);                                               \
  }                                                                                               \
  static __device__ __forceinline__ void name##_body(FOR_EACH(DECLARATION_OF, __VA_ARGS__),       \
                                                     const Params& p)
#define SHARED_ARRAY(T, name, n) __shared__ __align__(32) T name[n]

#define k_group      blockIdx
#define k_thread     threadIdx
#define k_grid_size  gridDim
#define k_group_size blockDim
#define k_thread_in_group (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z))
#define k_lane       (k_thread_in_group & 31u)
#define k_simdgroup  (k_thread_in_group >> 5)

#define group_barrier()        __syncthreads()
#define group_barrier_device() __syncthreads()
#define simdgroup_barrier()    __syncwarp()
#define wait_for_kernel_before() WAIT_FOR_KERNEL_BEFORE()
// clang-format on

namespace hearth::backend::gpu {

using f16 = __half;
struct bf16 {
  u16 bits;
};
using f32x4 = float4;
using u32x2 = uint2;
using u32x4 = uint4;

// Numbers.
DEVICE_FN f32 to_f32(f16 x) {
  return __half2float(x);
}
DEVICE_FN f32 to_f32(bf16 x) {
  return __uint_as_float(u32(x.bits) << 16);
}
DEVICE_FN f16 to_f16(f32 x) {
  return __float2half_rn(x);
}
DEVICE_FN f16 f16_of_bits(u32 bits) {
  return __ushort_as_half(static_cast<u16>(bits));
}
DEVICE_FN u32 bits_of_f16(f16 x) {
  return __half_as_ushort(x);
}
DEVICE_FN u32 bits_of_f32(f32 x) {
  return __float_as_uint(x);
}
DEVICE_FN f32 f32_of_bits(u32 bits) {
  return __uint_as_float(bits);
}
DEVICE_FN f32 fma_f32(f32 a, f32 b, f32 c) {
  return __fmaf_rn(a, b, c);
}
DEVICE_FN f32 sqrt_f32(f32 x) {
  return __fsqrt_rn(x);
}
DEVICE_FN f32 max_f32(f32 a, f32 b) {
  return fmaxf(a, b);
}
DEVICE_FN u32 min_u32(u32 a, u32 b) {
  return min(a, b);
}
DEVICE_FN u32 max_u32(u32 a, u32 b) {
  return max(a, b);
}
DEVICE_FN i32 dot4_i8(u32 a, u32 b, i32 sum) {
  return __dp4a(static_cast<int>(a), static_cast<int>(b), sum);
}
DEVICE_FN u32 pick_bytes(u32 low, u32 high, u32 places) {
  return __byte_perm(low, high, places & 0x7777u);
}

// Memory.
DEVICE_FN void prefetch(const void* from) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(from));
}
DEVICE_FN f32x4 load4(const f32* from) {
  return *reinterpret_cast<const float4*>(from);
}
DEVICE_FN u32x4 load4(const u32* from) {
  return *reinterpret_cast<const uint4*>(from);
}
/// Not into the multiprocessor's own cache.
DEVICE_FN u32x4 load4_once(const u32* from) {
  u32x4 to;
  asm("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(to.x), "=r"(to.y), "=r"(to.z), "=r"(to.w)
      : "l"(from));
  return to;
}
DEVICE_FN u32x2 load2(const u32* from) {
  return *reinterpret_cast<const uint2*>(from);
}
DEVICE_FN void store2(f32* to, f32 x, f32 y) {
  *reinterpret_cast<float2*>(to) = make_float2(x, y);
}
DEVICE_FN void store4(f32* to, f32x4 value) {
  *reinterpret_cast<float4*>(to) = value;
}
DEVICE_FN void store4(u32* to, u32x4 value) {
  *reinterpret_cast<uint4*>(to) = value;
}
DEVICE_FN const u32* words(const u8* bytes) {
  return reinterpret_cast<const u32*>(bytes);
}
DEVICE_FN const f32* floats(const u8* bytes) {
  return reinterpret_cast<const f32*>(bytes);
}
DEVICE_FN const u16* halfwords(const u8* bytes) {
  return reinterpret_cast<const u16*>(bytes);
}
template <class T>
DEVICE_FN const u8* bytes_of(T* cells) {
  return reinterpret_cast<const u8*>(cells);
}
DEVICE_FN u32* as_words(f32* floats) {
  return reinterpret_cast<u32*>(floats);
}
DEVICE_FN i32* as_integers(f32* floats) {
  return reinterpret_cast<i32*>(floats);
}

// Collectives.
inline constexpr u32 all_lanes = 0xffffffffu;

DEVICE_FN f32 simd_sum_f32(f32 value) {
  UNROLL for (u32 distance = 16; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(all_lanes, value, distance);
  }
  return value;
}
DEVICE_FN u32 simd_sum_u32(u32 value) {
  return __reduce_add_sync(all_lanes, value);
}
DEVICE_FN u32 simd_min_u32(u32 value) {
  return __reduce_min_sync(all_lanes, value);
}
DEVICE_FN u32 simd_max_u32(u32 value) {
  return __reduce_max_sync(all_lanes, value);
}
DEVICE_FN f32 simd_max_f32(f32 value) {
  UNROLL for (u32 distance = 16; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor_sync(all_lanes, value, distance));
  }
  return value;
}
DEVICE_FN f32 shuffle(f32 value, u32 lane) {
  return __shfl_sync(all_lanes, value, lane);
}
DEVICE_FN u32 shuffle(u32 value, u32 lane) {
  return __shfl_sync(all_lanes, value, lane);
}
DEVICE_FN f32 shuffle_xor(f32 value, u32 mask) {
  return __shfl_xor_sync(all_lanes, value, mask);
}
DEVICE_FN u32 shuffle_xor(u32 value, u32 mask) {
  return __shfl_xor_sync(all_lanes, value, mask);
}

// Integer tiles.
DEVICE_FN void add_tile_product_u8(i32* sums, u32x4 a, u32 b_low, u32 b_high, u32 /*lane*/) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b_low), "r"(b_high));
}
/// From zero on.
DEVICE_FN void tile_product_u8(i32* sums, u32x4 a, u32 b_low, u32 b_high, u32 /*lane*/) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
      : "=r"(sums[0]), "=r"(sums[1]), "=r"(sums[2]), "=r"(sums[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b_low), "r"(b_high), "r"(0));
}
/// With 16 columns of a and rows of b: the lower ones of each.
DEVICE_FN void add_half_tile_product_u8(i32* sums, u32 a_row, u32 a_row8, u32 b, u32 /*lane*/) {
  asm("mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32 "
      "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a_row), "r"(a_row8), "r"(b));
}
DEVICE_FN void add_tile_product_i8(i32* sums, u32x4 a, u32 b_low, u32 b_high, u32 /*lane*/) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b_low), "r"(b_high));
}
DEVICE_FN void tile_product_i8(i32* sums, u32x4 a, u32 b_low, u32 b_high, u32 /*lane*/) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
      : "=r"(sums[0]), "=r"(sums[1]), "=r"(sums[2]), "=r"(sums[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b_low), "r"(b_high), "r"(0));
}

}  // namespace hearth::backend::gpu
