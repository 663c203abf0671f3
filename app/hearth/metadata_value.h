#pragma once
/// Values of model metadata for people and for JSON. Long arrays (vocabularies) are shown by their
/// first elements.

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "formats/gguf/value.h"

namespace hearth::app {

/// One line, harmless for a terminal: "2048", "llama", "[<unk>, <s>, ...] 32000 x string".
std::string to_text(const formats::Value& value);

/// Scalars as they are; an array as {"element_type", "count", "first"}.
nlohmann::ordered_json to_json(const formats::Value& value);

}  // namespace hearth::app
