#pragma once
/// Puts GGUF files together byte by byte, right or wrong, independently of the writer.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "formats/gguf/reader.h"
#include "formats/gguf/value.h"

namespace hearth::formats {

class FileBytes {
 public:
  FileBytes& raw(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }

  template <class T>
  FileBytes& number(T value) {
    char bytes[sizeof(T)];
    store(bytes, value);
    return raw({bytes, sizeof bytes});
  }

  FileBytes& string(std::string_view text) { return number<std::uint64_t>(text.size()).raw(text); }

  FileBytes& header(std::uint64_t n_tensors, std::uint64_t n_keys, std::uint32_t version = 3) {
    return raw("GGUF").number(version).number(n_tensors).number(n_keys);
  }

  /// A key and the type of its value, which has to follow.
  FileBytes& key(std::string_view name, ValueType type) {
    return string(name).number(static_cast<std::uint32_t>(type));
  }

  template <class T>
  FileBytes& key_number(std::string_view name, T value) {
    return key(name, value_type_of<T>).number(value);
  }

  FileBytes& key_string(std::string_view name, std::string_view value) {
    return key(name, ValueType::string).string(value);
  }

  /// An array key and its count; the elements have to follow.
  FileBytes& key_array(std::string_view name, ValueType element_type, std::uint64_t count) {
    return key(name, ValueType::array)
        .number(static_cast<std::uint32_t>(element_type))
        .number(count);
  }

  /// `ne` as the file has it: innermost first.
  FileBytes& tensor(std::string_view name, std::initializer_list<std::uint64_t> ne,
                    std::uint32_t type, std::uint64_t offset) {
    string(name).number(static_cast<std::uint32_t>(ne.size()));
    for (const auto dim : ne) {
      number(dim);
    }
    return number(type).number(offset);
  }

  FileBytes& pad(std::size_t alignment = 32) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
    return *this;
  }

  FileBytes& zeros(std::size_t n_bytes) {
    bytes_.append(n_bytes, '\0');
    return *this;
  }

  [[nodiscard]] const std::string& text() const { return bytes_; }
  [[nodiscard]] Bytes bytes() const { return std::as_bytes(std::span(bytes_)); }

 private:
  std::string bytes_;
};

/// Tensor type numbers as files carry them.
inline constexpr std::uint32_t f32_id = 0;
inline constexpr std::uint32_t q8_0_id = 8;
inline constexpr std::uint32_t i8_id = 24;

/// The 192 bytes of the smallest complete file: one key, one Q8_0 tensor of 32 weights, scale 0.5,
/// codes 0 to 31, tail padding.
inline FileBytes minimal_file() {
  FileBytes file;
  file.header(1, 1)
      .key_string("general.architecture", "llama")
      .tensor("t.weight", {32, 1}, q8_0_id, 0)
      .pad()
      .number<std::uint16_t>(0x3800);
  for (std::uint8_t code = 0; code < 32; ++code) {
    file.number(code);
  }
  return file.pad();
}

/// What the reader says is wrong with a file.
inline std::string parse_error(const FileBytes& file) {
  const auto parsed = GgufFile::parse(file.bytes(), "model.gguf");
  return parsed ? "no error" : parsed.error().message;
}

}  // namespace hearth::formats
