#pragma once
/// Counts the allocations of this test binary through its own operator new.

namespace hearth::sampling {

/// Allocations since the program started, on any thread.
int allocation_count();

}  // namespace hearth::sampling
