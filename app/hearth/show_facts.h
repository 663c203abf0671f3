#pragma once
/// The part of `hearth show` that says what a model needs: its layers, and what a token reads and
/// keeps.

#include <iosfwd>

#include <nlohmann/json_fwd.hpp>

#include "formats/gguf/reader.h"

namespace hearth::app {

void print_facts(const formats::GgufFile& file, std::ostream& out);
void add_facts(const formats::GgufFile& file, nlohmann::ordered_json& json);

}  // namespace hearth::app
