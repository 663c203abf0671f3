#pragma once

#include <string>
#include <vector>

#include "model/checkpoint.h"

namespace hearth::model {

/// Every key and every tensor, a line each, sorted, as tests/golden/huggingface/expected.py writes
/// them.
std::vector<std::string> describe(const Checkpoint& checkpoint);

}  // namespace hearth::model
