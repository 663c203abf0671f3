#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace hearth::formats {

/// The bytes of a safetensors file: a header as given and so many bytes of data, counted from 0.
inline std::string safetensors_file(std::string_view header, std::size_t n_data) {
  const std::uint64_t length = header.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  file += header;
  for (std::size_t i = 0; i < n_data; ++i) {
    file += static_cast<char>(i);
  }
  return file;
}

/// One entry of a header: `"name":{...}`.
inline std::string entry(std::string_view name, std::string_view dtype, std::string_view shape,
                         std::uint64_t begin, std::uint64_t end) {
  return "\"" + std::string(name) + "\":{\"dtype\":\"" + std::string(dtype) +
         "\",\"shape\":" + std::string(shape) + ",\"data_offsets\":[" + std::to_string(begin) +
         "," + std::to_string(end) + "]}";
}

inline Bytes bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace hearth::formats
