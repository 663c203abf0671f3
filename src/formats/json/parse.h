#pragma once
/// JSON files that come with a model. They are hostile input like the model itself.

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"

namespace hearth::formats {

/// What a JSON text may ask of memory. A value takes some 64 bytes once parsed.
struct JsonLimits {
  std::size_t max_depth = 32;
  std::size_t max_values = std::size_t{1} << 23;  // eight times a tokenizer of 250,000 tokens
};

/// Parses a whole text. Stricter than the JSON specification: a key occurs once in its object.
/// Time O(n log n), memory bounded by `limits`, no recursion.
/// Errors: invalid_file, naming `file`.
Result<nlohmann::json> parse_json(std::string_view text, const std::string& file,
                                  const JsonLimits& limits = {});

/// Reads and parses a file of at most `max_bytes`. Errors: those of parse_json and MappedFile.
Result<nlohmann::json> read_json(const std::filesystem::path& path, std::size_t max_bytes);

}  // namespace hearth::formats
