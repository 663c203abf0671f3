#pragma once
/// Causal convolution of every channel by itself, then SiLU (graph/ops/causal_conv.h).

#include "backend/gpu/dialect/scalars.h"

namespace hearth::backend::gpu {

#define CAUSAL_CONV_CHANNELS 32  // of a threadgroup

/// causal_conv_f32. Buffers: counts, x [rows, channels], weight [channels, taps], row_starts
/// [sequences + 1], positions [rows], state_before [rows], state_after [rows], rings, y [rows,
/// channels].
/// rings: the layer's ring in slot s begins at float s * slot_stride of the buffer: [taps - 1,
/// channels], position p in row p mod (taps - 1), as in graph::HostStateCache. The ring after a row
/// is in slot state_after[row] once the kernel has ended, unless a later row of the sequence has
/// the same slot.
/// Grid (ceil(channels / CAUSAL_CONV_CHANNELS), capacity of sequences, threadgroups that share a
/// sequence's rows: any number), 256 threads.
/// causal_conv_few_f32: the same for 4 taps. Grid (ceil(channels / 256), capacity of sequences),
/// 256 threads.
struct CausalConvParams {
  u32 channels;
  u32 taps;         // 2 or more
  u64 slot_stride;  // floats from slot to slot
};

}  // namespace hearth::backend::gpu
