#pragma once
/// How faults of kernels are told.

#include <string>
#include <string_view>

#include "backend/gpu/emulator/lockstep.h"
#include "base/result.h"

namespace hearth::backend::gpu::emulator {

/// "a threadgroup barrier (softmax.cpp:40)"
std::string describe(const Event& event);

/// An error that names kernel, threadgroup, thread and line.
Error report(const Lane& lane, std::string_view what, Site where);

}  // namespace hearth::backend::gpu::emulator
