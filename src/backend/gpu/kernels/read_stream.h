#pragma once
/// Reads memory and does nothing else: how fast that goes bounds every decode step.

#include "backend/gpu/dialect/scalars.h"

namespace hearth::backend::gpu {

/// read_stream_u32: sums [threadgroups]: what the words that each threadgroup has read add up to.
/// Buffers: words u32 [4 n], sums u32. Threadgroups of 256, any number of them: thread t of all
/// reads the 16 bytes t, t + threads, ...
struct ReadStreamParams {
  u64 n;  // pieces of 16 bytes
};

}  // namespace hearth::backend::gpu
