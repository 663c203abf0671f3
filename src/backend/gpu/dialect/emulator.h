#pragma once
/// The dialect as C++ for the emulator.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "backend/gpu/dialect/scalars.h"
#include "backend/gpu/emulator/emulated_kernel.h"
#include "backend/gpu/emulator/lockstep.h"
#include "base/half.h"

// clang-format off
#define DEVICE_FN     static inline
#define UNROLL
#define KEEP_LOOP
#define DEVICE(T)     ::hearth::backend::gpu::emulator::DevicePointer<T>
#define SHARED(T)     ::hearth::backend::gpu::emulator::SharedPointer<T>
#define THREAD(T)     T*
#define THREAD_REF(T) T&
#define PARAMS(T)     const T&

#define BUFFER(index, T, name) DEVICE(T) name
#define KERNEL(name, max_threads, Params, ...) KERNEL_THAT(false, name, max_threads, Params, __VA_ARGS__)
#define EARLY_KERNEL(name, max_threads, Params, ...) KERNEL_THAT(true, name, max_threads, Params, __VA_ARGS__)
#define WIDE_EARLY_KERNEL EARLY_KERNEL
#define KERNEL_THAT(is_early, name, max_threads, Params, ...)                                         \
  static void name##_body(__VA_ARGS__, const Params& p, const emulator::Position& k_position);        \
  extern const emulator::EmulatedKernel name##_emulated;                                              \
  constinit const emulator::EmulatedKernel name##_emulated =                                          \
      emulator::describe_kernel<&name##_body>(#name, max_threads, #__VA_ARGS__, is_early);            \
  static void name##_body(__VA_ARGS__, [[maybe_unused]] const Params& p,                              \
                          [[maybe_unused]] const emulator::Position& k_position)
#define SHARED_ARRAY(T, name, n)                                                                      \
  const SHARED(T) name(emulator::shared_array(#name, sizeof(T), n, emulator::Site::current()), 0)

#define k_group      k_position.group
#define k_thread     k_position.thread
#define k_grid_size  k_position.grid_size
#define k_group_size k_position.group_size
#define k_lane       k_position.lane
#define k_simdgroup  k_position.simdgroup

// The last parameter of whatever a fault is reported for.
#define SITE ::hearth::backend::gpu::emulator::Site where = ::hearth::backend::gpu::emulator::Site::current()
// clang-format on

namespace hearth::backend::gpu {

using f16 = Half;
using bf16 = BFloat16;

struct alignas(16) f32x4 {
  f32 x, y, z, w;
};
struct alignas(8) u32x2 {
  u32 x, y;
};
struct alignas(8) f32x2 {
  f32 x, y;
};
struct alignas(16) u32x4 {
  u32 x, y, z, w;
};

// Numbers.
DEVICE_FN f32 to_f32(f16 x) {
  return to_float(x);
}
DEVICE_FN f32 to_f32(bf16 x) {
  return to_float(x);
}
DEVICE_FN f16 to_f16(f32 x) {
  return to_half(x);
}
DEVICE_FN f16 f16_of_bits(u32 bits) {
  return {static_cast<u16>(bits)};
}
DEVICE_FN u32 bits_of_f16(f16 x) {
  return x.bits;
}
DEVICE_FN u32 bits_of_f32(f32 x) {
  return std::bit_cast<u32>(x);
}
DEVICE_FN f32 f32_of_bits(u32 bits) {
  return std::bit_cast<f32>(bits);
}
DEVICE_FN f32 fma_f32(f32 a, f32 b, f32 c) {
  return std::fma(a, b, c);
}
DEVICE_FN f32 sqrt_f32(f32 x) {
  return std::sqrt(x);
}
DEVICE_FN f32 max_f32(f32 a, f32 b) {
  return a > b ? a : b;
}
DEVICE_FN u32 min_u32(u32 a, u32 b) {
  return a < b ? a : b;
}
DEVICE_FN u32 max_u32(u32 a, u32 b) {
  return a > b ? a : b;
}
DEVICE_FN i32 dot4_i8(u32 a, u32 b, i32 sum) {
  for (u32 shift = 0; shift < 32; shift += 8) {
    sum += (i32(a << (24 - shift)) >> 24) * (i32(b << (24 - shift)) >> 24);
  }
  return sum;
}
DEVICE_FN u32 pick_bytes(u32 low, u32 high, u32 places) {
  const u64 bytes = u64(high) << 32 | low;
  u32 picked = 0;
  for (u32 i = 0; i < 4; ++i) {
    picked |= (u32(bytes >> (8 * ((places >> (4 * i)) & 7u))) & 255u) << (8 * i);
  }
  return picked;
}

// Memory.
DEVICE_FN void prefetch(DEVICE(const u8)) {}
DEVICE_FN void prefetch(DEVICE(const f32)) {}
template <emulator::AddressSpace space>
f32x4 load4(emulator::CheckedPointer<const f32, space> from, SITE) {
  return from.template load<f32x4>(where);
}
template <emulator::AddressSpace space>
f32x4 load4(emulator::CheckedPointer<f32, space> from, SITE) {
  return from.template load<f32x4>(where);
}
template <emulator::AddressSpace space>
u32x4 load4(emulator::CheckedPointer<const u32, space> from, SITE) {
  return from.template load<u32x4>(where);
}
template <emulator::AddressSpace space>
u32x4 load4(emulator::CheckedPointer<u32, space> from, SITE) {
  return from.template load<u32x4>(where);
}
DEVICE_FN u32x4 load4_once(DEVICE(const u32) from, SITE) {
  return load4(from, where);
}
template <emulator::AddressSpace space>
u32x2 load2(emulator::CheckedPointer<const u32, space> from, SITE) {
  return from.template load<u32x2>(where);
}
DEVICE_FN void store2(SHARED(f32) to, f32 x, f32 y, SITE) {
  to.store(f32x2{x, y}, where);
}
template <emulator::AddressSpace space>
void store4(emulator::CheckedPointer<f32, space> to, f32x4 value, SITE) {
  to.store(value, where);
}
template <emulator::AddressSpace space>
void store4(emulator::CheckedPointer<u32, space> to, u32x4 value, SITE) {
  to.store(value, where);
}
template <emulator::AddressSpace space>
emulator::CheckedPointer<const u32, space> words(emulator::CheckedPointer<const u8, space> bytes) {
  return bytes.template as<u32>();
}

DEVICE_FN DEVICE(const f32) floats(DEVICE(const u8) bytes) {
  return bytes.template as<f32>();
}
template <emulator::AddressSpace space>
emulator::CheckedPointer<const u16, space> halfwords(
    emulator::CheckedPointer<const u8, space> bytes) {
  return bytes.template as<u16>();
}
template <class T>
DEVICE_FN DEVICE(const u8) bytes_of(emulator::DevicePointer<T> cells) {
  return cells.template as<u8>();
}
DEVICE_FN SHARED(u32) as_words(SHARED(f32) floats) {
  return floats.template as<u32>();
}
DEVICE_FN SHARED(i32) as_integers(SHARED(f32) floats) {
  return floats.template as<i32>();
}

// Barriers and collectives.
DEVICE_FN void group_barrier(SITE) {
  emulator::group_barrier(where);
}
DEVICE_FN void group_barrier_device(SITE) {
  emulator::group_barrier(where);
}
DEVICE_FN void simdgroup_barrier(SITE) {
  emulator::simdgroup_barrier(where);
}
DEVICE_FN void wait_for_kernel_before() {
  emulator::wait_for_kernel_before();
}

/// A butterfly: at distance 16, 8, 4, 2, 1.
DEVICE_FN f32 simd_sum_f32(f32 value, SITE) {
  return emulator::collective(value, where, [](const f32* given, f32* sums) {
    std::array<f32, 32> now;
    std::copy_n(given, 32, now.begin());
    for (u32 distance = 16; distance > 0; distance /= 2) {
      const auto before = now;
      for (u32 i = 0; i < 32; ++i) {
        now[i] = before[i] + before[i ^ distance];
      }
    }
    std::copy_n(now.begin(), 32, sums);
  });
}
DEVICE_FN u32 simd_sum_u32(u32 value, SITE) {
  return emulator::collective(value, where, [](const u32* given, u32* sums) {
    u32 sum = 0;
    for (u32 i = 0; i < 32; ++i) {
      sum += given[i];
    }
    std::fill_n(sums, 32, sum);
  });
}
DEVICE_FN u32 simd_min_u32(u32 value, SITE) {
  return emulator::collective(value, where, [](const u32* given, u32* minima) {
    std::fill_n(minima, 32, *std::min_element(given, given + 32));
  });
}
DEVICE_FN u32 simd_max_u32(u32 value, SITE) {
  return emulator::collective(value, where, [](const u32* given, u32* maxima) {
    std::fill_n(maxima, 32, *std::max_element(given, given + 32));
  });
}
DEVICE_FN f32 simd_max_f32(f32 value, SITE) {
  return emulator::collective(value, where, [](const f32* given, f32* maxima) {
    f32 maximum = given[0];
    for (u32 i = 1; i < 32; ++i) {
      maximum = max_f32(maximum, given[i]);
    }
    std::fill_n(maxima, 32, maximum);
  });
}

namespace emulator {
/// The value of another lane, which may be a different one for every lane.
template <class T>
T value_of_lane(T value, u32 lane, Site where) {
  if (lane >= simdgroup_lanes) {
    fault_no_such_lane(lane, where);
  }
  struct Request {
    T value;
    u32 lane;
  };
  return std::bit_cast<Request>(collective(std::bit_cast<u64>(Request{value, lane}), where,
                                           [](const u64* given, u64* taken) {
                                             for (u32 i = 0; i < simdgroup_lanes; ++i) {
                                               taken[i] =
                                                   given[std::bit_cast<Request>(given[i]).lane];
                                             }
                                           }))
      .value;
}
}  // namespace emulator

DEVICE_FN f32 shuffle(f32 value, u32 lane, SITE) {
  return emulator::value_of_lane(value, lane, where);
}
DEVICE_FN u32 shuffle(u32 value, u32 lane, SITE) {
  return emulator::value_of_lane(value, lane, where);
}
DEVICE_FN f32 shuffle_xor(f32 value, u32 mask, SITE) {
  return emulator::value_of_lane(value, emulator::current_lane->position.lane ^ mask, where);
}
DEVICE_FN u32 shuffle_xor(u32 value, u32 mask, SITE) {
  return emulator::value_of_lane(value, emulator::current_lane->position.lane ^ mask, where);
}

// Integer tiles.
namespace emulator {
/// What a lane brings to a product of tiles.
struct IntegerTiles {
  i32* sums;
  u32x4 a;
  u32 b[2];
};

template <bool is_signed>
void unpack_bytes(u32 word, i32* bytes) {
  for (u32 i = 0; i < 4; ++i) {
    bytes[i] = is_signed ? i32(word << (24 - 8 * i)) >> 24 : i32((word >> (8 * i)) & 255u);
  }
}

template <bool is_signed>
void multiply_integer_tiles(const IntegerTiles* const* lanes) {
  i32 a[16][32];
  i32 b[8][32];
  for (u32 lane = 0; lane < 32; ++lane) {
    const IntegerTiles& tiles = *lanes[lane];
    const u32 row = lane / 4;
    const u32 k = 4 * (lane % 4);
    unpack_bytes<is_signed>(tiles.a.x, &a[row][k]);
    unpack_bytes<is_signed>(tiles.a.y, &a[row + 8][k]);
    unpack_bytes<is_signed>(tiles.a.z, &a[row][k + 16]);
    unpack_bytes<is_signed>(tiles.a.w, &a[row + 8][k + 16]);
    unpack_bytes<true>(tiles.b[0], &b[row][k]);
    unpack_bytes<true>(tiles.b[1], &b[row][k + 16]);
  }
  for (u32 i = 0; i < 16; ++i) {
    for (u32 j = 0; j < 8; ++j) {
      i32 sum = 0;
      for (u32 k = 0; k < 32; ++k) {
        sum += a[i][k] * b[j][k];
      }
      lanes[i % 8 * 4 + j / 2]->sums[i / 8 * 2 + j % 2] += sum;
    }
  }
}

template <bool is_signed>
void add_tile_product(i32* sums, u32x4 a, u32 b_low, u32 b_high, Site where) {
  const IntegerTiles tiles{sums, a, {b_low, b_high}};
  collective(&tiles, where, [](const IntegerTiles* const* lanes, auto* /*unused*/) {
    multiply_integer_tiles<is_signed>(lanes);
  });
}
}  // namespace emulator

DEVICE_FN void add_tile_product_u8(THREAD(i32) sums, u32x4 a, u32 b_low, u32 b_high, u32 /*lane*/,
                                   SITE) {
  emulator::add_tile_product<false>(sums, a, b_low, b_high, where);
}
DEVICE_FN void tile_product_u8(THREAD(i32) sums, u32x4 a, u32 b_low, u32 b_high, u32 /*lane*/,
                               SITE) {
  std::fill_n(sums, 4, 0);
  emulator::add_tile_product<false>(sums, a, b_low, b_high, where);
}
DEVICE_FN void add_half_tile_product_u8(THREAD(i32) sums, u32 a_row, u32 a_row8, u32 b,
                                        u32 /*lane*/, SITE) {
  emulator::add_tile_product<false>(sums, {a_row, a_row8, 0, 0}, b, 0, where);
}
DEVICE_FN void add_tile_product_i8(THREAD(i32) sums, u32x4 a, u32 b_low, u32 b_high, u32 /*lane*/,
                                   SITE) {
  emulator::add_tile_product<true>(sums, a, b_low, b_high, where);
}
DEVICE_FN void tile_product_i8(THREAD(i32) sums, u32x4 a, u32 b_low, u32 b_high, u32 /*lane*/,
                               SITE) {
  std::fill_n(sums, 4, 0);
  emulator::add_tile_product<true>(sums, a, b_low, b_high, where);
}

}  // namespace hearth::backend::gpu
