#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace hearth::plan {

/// Places every value that a launch writes: a value's memory is free again after the last launch
/// that reads it and merged_launches - 1 others behind that, and a launch never writes memory that
/// it also reads. Best fit over lifetimes, 256-byte alignment. Returns the arena size in bytes.
std::int64_t place_values(Plan& plan, std::size_t merged_launches);

}  // namespace hearth::plan
