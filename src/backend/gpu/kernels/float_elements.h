#pragma once
/// Elements of the formats without blocks, in words of shared memory.

#include "backend/gpu/dialect/dialect.h"

namespace hearth::backend::gpu {

#define F32_BYTES 4
#define F16_BYTES 2
#define BF16_BYTES 2

DEVICE_FN f32 f32_element(SHARED(const u32) words, u32 i) {
  return f32_of_bits(words[i]);
}

DEVICE_FN f32 f16_element(SHARED(const u32) words, u32 i) {
  return to_f32(f16_of_bits((words[i / 2] >> (16 * (i % 2))) & 0xffffu));
}

DEVICE_FN f32 bf16_element(SHARED(const u32) words, u32 i) {
  return f32_of_bits((words[i / 2] >> (16 * (i % 2))) << 16);
}

}  // namespace hearth::backend::gpu
