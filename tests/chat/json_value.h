#pragma once
/// JSON files as values, for tests.

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include "chat/template/value.h"

namespace hearth::chat {

using Json = nlohmann::ordered_json;

inline Value value_from(const Json& json) {
  if (json.is_boolean()) {
    return Value(json.get<bool>());
  }
  if (json.is_number_integer()) {
    return Value(json.get<std::int64_t>());
  }
  if (json.is_number_float()) {
    return Value(json.get<double>());
  }
  if (json.is_string()) {
    return Value(json.get<std::string>());
  }
  if (json.is_array()) {
    std::vector<Value> items;
    for (const Json& item : json) {
      items.push_back(value_from(item));
    }
    return Value(std::move(items));
  }
  if (json.is_object()) {
    Dict dict;
    for (const auto& [key, item] : json.items()) {
      dict.set(key, value_from(item));
    }
    return Value(std::move(dict));
  }
  return Value();
}

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline Json read_json(const std::filesystem::path& path) {
  return Json::parse(read_text(path));
}

}  // namespace hearth::chat
