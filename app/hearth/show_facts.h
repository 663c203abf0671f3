#pragma once
/// The part of `hearth show` that says what a model needs: its layers, and what a token reads and
/// keeps.

#include <iosfwd>

#include <nlohmann/json_fwd.hpp>

#include "model/checkpoint.h"

namespace hearth::app {

void print_facts(const model::Checkpoint& file, std::ostream& out);
void add_facts(const model::Checkpoint& file, nlohmann::ordered_json& json);

}  // namespace hearth::app
