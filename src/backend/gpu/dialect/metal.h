/// The dialect as Metal Shading Language 3.1. Not included by anything: the build puts it in front
/// of the kernels (cmake/MetalSource.cmake), where what other targets take from dialect/scalars.h
/// is here too.

#include <metal_stdlib>
using namespace metal;

typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;
typedef char i8;
typedef short i16;
typedef int i32;
typedef long i64;
typedef float f32;
typedef half f16;
typedef float4 f32x4;
typedef uint2 u32x2;
typedef uint4 u32x4;
struct bf16 {
  u16 bits;
};

// clang-format off
#define DEVICE_FN     static inline
#define UNROLL        _Pragma("clang loop unroll(full)")
#define KEEP_LOOP     _Pragma("clang loop unroll(disable)")
#define DEVICE(T)     device T*
#define SHARED(T)     threadgroup T*
#define THREAD(T)     thread T*
#define THREAD_REF(T) thread T&
#define PARAMS(T)     constant T&

#define BUFFER(index, T, name) device T* name [[buffer(index)]]
#ifdef HEARTH_METAL_LINT  // clang's front end for OpenCL knows the keyword, not the attribute
#define KERNEL_ENTRY(max_threads) kernel void
#else
#define KERNEL_ENTRY(max_threads) [[kernel, max_total_threads_per_threadgroup(max_threads)]] void
#endif
#define KERNEL(name, max_threads, Params, ...)                                \
  KERNEL_ENTRY(max_threads) name(__VA_ARGS__, constant Params& p [[buffer(30)]], \
      uint3 k_group [[threadgroup_position_in_grid]],                         \
      uint3 k_thread [[thread_position_in_threadgroup]],                      \
      uint3 k_grid_size [[threadgroups_per_grid]],                            \
      uint3 k_group_size [[threads_per_threadgroup]],                         \
      uint k_lane [[thread_index_in_simdgroup]],                              \
      uint k_simdgroup [[simdgroup_index_in_threadgroup]])
#define EARLY_KERNEL KERNEL
#define WIDE_EARLY_KERNEL KERNEL
#define SHARED_ARRAY(T, name, n) threadgroup T name[n]

#define group_barrier()        threadgroup_barrier(mem_flags::mem_threadgroup)
#define group_barrier_device() threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup)
#define simdgroup_barrier()    metal::simdgroup_barrier(mem_flags::mem_threadgroup)
#define wait_for_kernel_before() static_cast<void>(0)
// clang-format on

// Numbers.
DEVICE_FN f32 to_f32(f16 x) {
  return f32(x);
}
DEVICE_FN f32 to_f32(bf16 x) {
  return as_type<f32>(u32(x.bits) << 16);
}
DEVICE_FN f16 to_f16(f32 x) {
  return f16(x);
}
DEVICE_FN f16 f16_of_bits(u32 bits) {
  return as_type<f16>(u16(bits));
}
DEVICE_FN u32 bits_of_f16(f16 x) {
  return as_type<u16>(x);
}
DEVICE_FN u32 bits_of_f32(f32 x) {
  return as_type<u32>(x);
}
DEVICE_FN f32 f32_of_bits(u32 bits) {
  return as_type<f32>(bits);
}
DEVICE_FN f32 fma_f32(f32 a, f32 b, f32 c) {
  return fma(a, b, c);
}
DEVICE_FN f32 sqrt_f32(f32 x) {
  return precise::sqrt(x);
}
DEVICE_FN f32 max_f32(f32 a, f32 b) {
  return fmax(a, b);
}
DEVICE_FN u32 min_u32(u32 a, u32 b) {
  return min(a, b);
}
DEVICE_FN u32 max_u32(u32 a, u32 b) {
  return max(a, b);
}
DEVICE_FN i32 dot4_i8(u32 a, u32 b, i32 sum) {
  UNROLL for (u32 shift = 0; shift < 32; shift += 8) {
    sum += (i32(a << (24 - shift)) >> 24) * (i32(b << (24 - shift)) >> 24);
  }
  return sum;
}
DEVICE_FN u32 pick_bytes(u32 low, u32 high, u32 places) {
  const u64 bytes = u64(high) << 32 | low;
  u32 picked = 0;
  UNROLL for (u32 i = 0; i < 4; ++i) {
    picked |= (u32(bytes >> (8 * ((places >> (4 * i)) & 7u))) & 255u) << (8 * i);
  }
  return picked;
}

// Vectors, and vectors in memory.
DEVICE_FN f32x4 make4(f32 x, f32 y, f32 z, f32 w) {
  return float4(x, y, z, w);
}
DEVICE_FN f32x4 load4(DEVICE(const f32) from) {
  return *(DEVICE(const f32x4))from;
}
DEVICE_FN f32x4 load4(SHARED(const f32) from) {
  return *(SHARED(const f32x4))from;
}
DEVICE_FN u32x4 load4(DEVICE(const u32) from) {
  return *(DEVICE(const u32x4))from;
}
DEVICE_FN u32x4 load4(SHARED(const u32) from) {
  return *(SHARED(const u32x4))from;
}
DEVICE_FN u32x4 load4_once(DEVICE(const u32) from) {
  return load4(from);
}
DEVICE_FN u32x2 load2(DEVICE(const u32) from) {
  return *(DEVICE(const u32x2))from;
}
DEVICE_FN u32x2 load2(SHARED(const u32) from) {
  return *(SHARED(const u32x2))from;
}
DEVICE_FN void store2(SHARED(f32) to, f32 x, f32 y) {
  *(threadgroup float2*)to = float2(x, y);
}
DEVICE_FN void store4(DEVICE(f32) to, f32x4 value) {
  *(DEVICE(f32x4))to = value;
}
DEVICE_FN void store4(SHARED(f32) to, f32x4 value) {
  *(SHARED(f32x4))to = value;
}
DEVICE_FN void store4(SHARED(u32) to, u32x4 value) {
  *(SHARED(u32x4))to = value;
}
DEVICE_FN void prefetch(DEVICE(const void) from) {
  (void)from;
}
DEVICE_FN DEVICE(const u32) words(DEVICE(const u8) bytes) {
  return (DEVICE(const u32))bytes;
}
DEVICE_FN SHARED(const u32) words(SHARED(const u8) bytes) {
  return (SHARED(const u32))bytes;
}
DEVICE_FN DEVICE(const f32) floats(DEVICE(const u8) bytes) {
  return (DEVICE(const f32))bytes;
}
DEVICE_FN DEVICE(const u16) halfwords(DEVICE(const u8) bytes) {
  return (DEVICE(const u16))bytes;
}
template <typename T>
DEVICE_FN DEVICE(const u8) bytes_of(DEVICE(T) cells) {
  return (DEVICE(const u8))cells;
}
DEVICE_FN SHARED(u32) as_words(SHARED(f32) floats) {
  return (SHARED(u32))floats;
}
DEVICE_FN SHARED(i32) as_integers(SHARED(f32) floats) {
  return (SHARED(i32))floats;
}

// Collectives. Sums are butterflies as on the other targets, since the order of simd_sum() is
// nowhere written down.
DEVICE_FN f32 shuffle(f32 value, u32 lane) {
  return simd_shuffle(value, ushort(lane));
}
DEVICE_FN u32 shuffle(u32 value, u32 lane) {
  return simd_shuffle(value, ushort(lane));
}
DEVICE_FN f32 shuffle_xor(f32 value, u32 mask) {
  return simd_shuffle_xor(value, ushort(mask));
}
DEVICE_FN u32 shuffle_xor(u32 value, u32 mask) {
  return simd_shuffle_xor(value, ushort(mask));
}
DEVICE_FN f32 simd_sum_f32(f32 value) {
  UNROLL for (u32 distance = 16; distance > 0; distance /= 2) {
    value += shuffle_xor(value, distance);
  }
  return value;
}
DEVICE_FN u32 simd_sum_u32(u32 value) {
  return simd_sum(value);
}
DEVICE_FN u32 simd_min_u32(u32 value) {
  return simd_min(value);
}
DEVICE_FN u32 simd_max_u32(u32 value) {
  return simd_max(value);
}
DEVICE_FN f32 simd_max_f32(f32 value) {
  return simd_max(value);
}

// Integer tiles, by dot products: Metal has no instruction for them.
DEVICE_FN i32 dot_tile_word(u32 a, u32 b, i32 sum, bool is_signed) {
  UNROLL for (u32 shift = 0; shift < 32; shift += 8) {
    const u32 left = a << (24 - shift);
    sum += (is_signed ? i32(left) >> 24 : i32(left >> 24)) * (i32(b << (24 - shift)) >> 24);
  }
  return sum;
}
DEVICE_FN void add_tile_product(THREAD(i32) sums, u32x4 a, u32 b_low, u32 b_high, bool is_signed,
                                u32 lane) {
  UNROLL for (u32 i = 0; i < 4; ++i) {
    const u32 row = lane / 4 * 4 + i;
    const u32 words[4] = {shuffle(a.x, row), shuffle(a.y, row), shuffle(a.z, row),
                          shuffle(a.w, row)};
    UNROLL for (u32 column = 0; column < 2; ++column) {
      const u32 from = (lane % 4 * 2 + column) * 4 + i;
      const u32 low = shuffle(b_low, from);
      const u32 high = shuffle(b_high, from);
      UNROLL for (u32 half_row = 0; half_row < 2; ++half_row) {
        THREAD(i32) sum = sums + (2 * half_row + column);
        sum[0] = dot_tile_word(words[half_row], low, sum[0], is_signed);
        sum[0] = dot_tile_word(words[2 + half_row], high, sum[0], is_signed);
      }
    }
  }
}
DEVICE_FN void add_tile_product_u8(THREAD(i32) sums, u32x4 a, u32 b_low, u32 b_high, u32 lane) {
  add_tile_product(sums, a, b_low, b_high, false, lane);
}
DEVICE_FN void tile_product_u8(THREAD(i32) sums, u32x4 a, u32 b_low, u32 b_high, u32 lane) {
  UNROLL for (u32 i = 0; i < 4; ++i) {
    sums[i] = 0;
  }
  add_tile_product(sums, a, b_low, b_high, false, lane);
}
DEVICE_FN void add_half_tile_product_u8(THREAD(i32) sums, u32 a_row, u32 a_row8, u32 b, u32 lane) {
  const u32x4 a = {a_row, a_row8, 0, 0};
  add_tile_product(sums, a, b, 0, false, lane);
}
DEVICE_FN void add_tile_product_i8(THREAD(i32) sums, u32x4 a, u32 b_low, u32 b_high, u32 lane) {
  add_tile_product(sums, a, b_low, b_high, true, lane);
}
DEVICE_FN void tile_product_i8(THREAD(i32) sums, u32x4 a, u32 b_low, u32 b_high, u32 lane) {
  UNROLL for (u32 i = 0; i < 4; ++i) {
    sums[i] = 0;
  }
  add_tile_product_i8(sums, a, b_low, b_high, lane);
}
